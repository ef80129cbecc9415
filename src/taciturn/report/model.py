"""What a model's file says, as blocks: coefficients, and where they come from."""

from __future__ import annotations

import math
from collections.abc import Mapping

from taciturn.report.blocks import Block, Facts, Heading, Paragraph, Table, Words, table
from taciturn.report.training import label_epsilon
from taciturn.report.words import NONE, plain, share
from taciturn.results.model import ListedModel, ModelCard, ModelList, UsedModel


def card_blocks(card: ModelCard, top: int) -> list[Block]:
    """What a model's file says; at most so many coefficients and lines of the preparation."""
    blocks: list[Block] = [
        Paragraph(f"{card.name or card.role}'s share of a model", "strong"),
        _facts(card),
    ]
    if card.coefficients is not None:
        blocks += _coefficients(card, top)
    metrics = _metrics(card.metrics)
    if metrics.rows:
        blocks.append(metrics)
    lines = card.preparation
    blocks += [Heading("preparation"), *(Paragraph(line, "muted") for line in lines[:top])]
    if len(lines) > top:
        blocks.append(Paragraph(f"and {len(lines) - top:,} more columns (--top, --json)", "muted"))
    return [*blocks, *(Paragraph(f"note: {note}", "warning") for note in card.notes)]


def list_blocks(models: ModelList) -> list[Block]:
    """The newest model and those of earlier sessions."""
    headings = ("file", "written", "session", "mechanism", "rows")
    return [
        table(
            headings,
            [_listed(model) for model in models.models],
            caption="models, the newest first",
            words=(0, 1, 2, 3),
        )
    ]


def _listed(model: ListedModel) -> tuple[str, ...]:
    name = f"{model.file} (newest)" if model.newest else model.file
    if model.problem is not None:
        return name, model.written, NONE, model.problem, NONE
    rows = NONE if model.rows is None else f"{model.rows:,}"
    return name, model.written, model.session or NONE, model.mechanism or NONE, rows


def _facts(card: ModelCard) -> Facts:
    epsilon = "" if card.epsilon is None else f", epsilon {card.epsilon}"
    return Facts(
        {
            "holds": card.holds,
            "protected by": f"{card.mechanism}{epsilon}",
            "a label's epsilon in all": _paid(card.ledger),
            "trained on": f"{card.rows:,} rows, session {card.session}",
            "agreement": card.agreement_digest,
            "data": card.data_digest,
            "written by": f"taciturn {card.taciturn}",
            **_threshold(card.metrics),
            **_told(card.metrics),
        }
    )


def _threshold(metrics: Mapping[str, object]) -> dict[str, Words]:
    threshold = metrics.get("threshold")
    if not isinstance(threshold, Mapping):
        return {}
    probability, rule = threshold.get("probability"), str(threshold.get("rule"))[:20]
    above = share(probability) if isinstance(probability, float) else NONE
    return {"class 1": f"above a probability of {above} (rule: {rule})"}


def _told(metrics: Mapping[str, object]) -> dict[str, Words]:
    quality = metrics.get("told_quality")
    if not isinstance(quality, Mapping):
        return {}
    figures = [
        f"{name} {share(value, 0)}"
        for key, name in (("accuracy", "accuracy"), ("auc", "AUC"))
        if isinstance(value := quality.get(key), float)
    ]
    return {"told to Alice": ", ".join(figures) or NONE}


def _paid(ledger: Mapping[str, object]) -> str:
    if not ledger:
        return "the ledger is in Bob's file"
    total = ledger.get("label_epsilon_total")
    paid = "infinite: no protection" if total == "inf" else _number(total)
    return f"{paid} ({ledger.get('assumption', 'the file does not say what that rests on')})"


def _number(value: object, digits: str = "g") -> str:
    """A number in short; a dash for what is none: the file may come from anywhere."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return f"{value:{digits}}"
    return NONE


def _coefficients(card: ModelCard, top: int) -> list[Block]:
    rows = []
    for one in (card.coefficients or ())[:top]:
        original = "says nothing" if one.original is None else f"{one.original:.6g}"
        rows.append((one.column, f"{one.prepared:.6f}", f"{original}{' *' * one.clipped}"))
    name = "(this side's constant)" if card.intercept is None else "(intercept)"
    offset = card.original_offset or 0.0
    rows.append((name, f"{card.intercept or 0.0:.6f}", f"{offset:.6g}"))
    blocks: list[Block] = [
        table(("column", "prepared", "original unit"), rows, label="Coefficients")
    ]
    if any(one.clipped for one in card.coefficients or ()):
        blocks.append(Paragraph("* while the prepared value is within its clip", "muted"))
    hidden = len(card.coefficients or ()) - top
    if hidden > 0:
        blocks.append(Paragraph(f"and {hidden:,} smaller ones (--top, --json)", "muted"))
    return blocks


def _metrics(metrics: Mapping[str, object]) -> Table:
    rows = []
    names = ("training rows", "held-out rows", "the same, Bob alone")
    for key, name in zip(("train", "held_out", "bob_alone"), names, strict=True):
        part = metrics.get(key)
        if isinstance(part, Mapping):
            shares = [part.get(figure) for figure in ("accuracy", "auc")]
            written = [share(value) if isinstance(value, float) else NONE for value in shares]
            rows.append((name, *written, _number(part.get("loss"), ".4f")))
    return table(("", "accuracy", "AUC", "log loss"), rows, label="Figures of the model")


def used_blocks(used: UsedModel) -> list[Block]:
    """A model of a study that was taken into use."""
    values = ", ".join(f"{name.replace('_', '-')} {plain(v)}" for name, v in used.values.items())
    facts: dict[str, Words] = {
        "model": f"{used.model} of {used.models}: {values}",
        "file": used.file,
    }
    if used.choice_bits is not None and used.epsilon is not None:
        facts["this tells"] = f"which of them was chosen, at most {used.choice_bits:.1f} bits"
        facts["charged"] = label_epsilon(used.epsilon)
    return [Facts(facts)]
