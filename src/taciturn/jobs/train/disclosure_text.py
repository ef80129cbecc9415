"""Disclosure statement: the messages that each side receives in a training.

**Guarantee.** The sentences follow from the agreement and the tables' sizes, so that both sides
have the same.

**Assumes.** Both keep to the protocol; ``docs/threat_model.md`` says
what a party that deviates learns.
"""

from __future__ import annotations

from taciturn.errors import counted
from taciturn.jobs.train.exposure import reconstruction, study_sums_of, sums_alone
from taciturn.protocol.mutual_sums import opened_sums
from taciturn.protocol.opened_scores import OpenedScores
from taciturn.protocol.openings import Opened, openings_of, sums_text
from taciturn.protocol.terms import Terms
from taciturn.results.cost_preview import Disclosure, OpenedNumbers


def disclosure_text(
    terms: Terms,
    rows: int,
    held_out: int = 0,
    opened: OpenedScores | None = None,
    study: str = "",
) -> Disclosure:
    """Sentences on what Alice receives and what Bob receives.

    ``opened`` counts the scores that several trainings open, and ``study`` is the text about them.
    """
    beyond = f" {study}" if study else ""
    opened = opened or OpenedScores.from_terms(terms, rows, held_out)
    looks = opened.per_held_out_row if held_out else 0
    return Disclosure(
        alice=_to_alice(terms) + beyond,
        bob=_to_bob(terms, rows, opened, held_out) + beyond,
        columns=reconstruction(terms, opened),
        openings=tuple(map(_numbers, openings_of(terms, rows, opened.per_row, looks))),
    )


def _numbers(opened: Opened) -> OpenedNumbers:
    opening = opened.opening
    return OpenedNumbers(
        kind=opening.kind,
        description=opening.description,
        receiver=opening.receiver,
        numbers=opened.numbers,
        per=opening.per,
        noise=opened.noise_text,
        noise_rows=opened.noise_rows,
        bounded_by=opening.bounded_by,
        rests_on=opening.rests_on,
        depends_on_labels=opening.on_labels,
        depends_on_columns=opening.on_columns,
    )


def _to_alice(terms: Terms) -> str:
    agreed, method = terms.agreement, terms.mechanism
    sentences = [f"Alice receives {method.receives()}."]
    if agreed.bob_update == "true":
        sentences.append(
            "Bob's own weights learn from true residues, so that what she receives later depends "
            "on every label."
        )
    if agreed.patience is not None:
        sentences.append("She sees when Bob ends the training, which depends on labels.")
    sentences.append(
        "At the end she has a random share of her weights, which alone reveals nothing."
        if terms.shares_weights and not agreed.reveal
        else "At the end she has the weights of her columns."
    )
    if agreed.share_metrics == "quality":
        noisy = agreed.metrics_epsilon is not None
        figures = "accuracy, with noise," if noisy else "accuracy and AUC"
        sentences.append(
            f"Bob tells her the model's {figures} on the held-out rows, in whole per cent, which "
            "depends on labels."
        )
    return " ".join(sentences)


def _to_bob(terms: Terms, rows: int, opened: OpenedScores, held_out: int) -> str:
    if terms.shares_scores:
        return _to_unseeing_bob(terms, rows, opened, held_out)
    if not opened.in_all:
        return "Bob receives no score of a row."
    scores = f"Bob receives up to {counted(opened.per_row, 'score')} of each training row"
    if held_out:
        scores += f" and {counted(opened.per_held_out_row, 'score')} of each held-out row"
    several = terms.agreement.alices > 1
    whose = "all Alices'" if several else "Alice's"
    end = f"and a random share of {'theirs' if several else 'hers'}"
    return (
        f"{scores}, {opened.in_all:,} numbers in all: each is a sum of {whose} columns of the row "
        "with one weight for each column. At the end he has the weights of his columns"
        f"{f' {end}' if terms.shares_weights else ''}, and knows how good the model is."
        + "".join(f" {note[0].upper()}{note[1:]}." for note in sums_alone(terms))
    )


def _sums_named(terms: Terms, rows: int) -> str:
    kinds = opened_sums(terms, rows)
    if not kinds:
        return f"{sums_text(terms, rows)}."
    return f"After the last pass he learns the {' and the '.join(kinds)}, with noise."


def _to_unseeing_bob(terms: Terms, rows: int, opened: OpenedScores, held_out: int) -> str:
    if terms.summed is not None or opened.per_row:
        return _to_studying_bob(terms, opened)
    sentences = [
        "Bob receives ciphertexts under Alice's key, random-looking numbers, and no score of a "
        "training row.",
        _sums_named(terms, rows),
        "He learns the largest leverage of one of Alice's rows as a power of two.",
    ]
    if held_out:
        sentences.append(
            f"At the end he receives {counted(opened.per_held_out_row, 'score')} of each held-out "
            "row, and knows how good the model is."
        )
    sentences.append(
        "He has the weights of his columns, which depend on hers."
        if terms.agreement.reveal_bob
        else "He has random shares of all weights, which alone reveal nothing."
    )
    return " ".join(sentences)


def _to_studying_bob(terms: Terms, opened: OpenedScores) -> str:
    """What a study in ``mutual`` opens to Bob."""
    sentences = ["Bob receives ciphertexts under Alice's key and random-looking numbers."]
    ends = opened.sums - opened.study_sums
    if opened.per_row:
        sentences.append(
            f"He receives up to {counted(opened.per_row, 'score')} of each training row and "
            f"{counted(opened.per_held_out_row, 'score')} of each held-out row, and knows how good "
            "each model is."
        )
    else:
        sentences.append(f"{study_sums_of(terms, opened)}.")
    if ends:
        sentences.append(f"He learns {counted(ends, 'noisy sum')} over all training rows.")
    sentences.append("He has random shares of all weights, which alone reveal nothing.")
    return " ".join(sentences)
