"""What joint predictions will tell each side once there is a model, before there is one.

For each row Bob ends with one number, the score ``z = x_A w_A + x_B w_B`` and Alice's noise. But
for ``mutual`` he knows the second part, and takes it off: what is left is one linear function of
Alice's columns for each row and each model. No message tells him ``w_A``, but who reconstructs her
columns from the training has it too. Where he has it for as many models as she has columns, their
numbers for a row are as many equations as unknowns, and he solves for the row; columns of few
values take fewer. Where Alice's weights are shared, a Bob who does not keep to the protocol needs
no further model: he sends another vector in place of his share each time, and takes differences.

Alice hears which rows are asked, when and how many. No score and no label reaches her.
"""

from __future__ import annotations

from taciturn.privacy.registry import mechanism
from taciturn.results.check import PredictionNotes
from taciturn.settings.agreement import Agreement


def prediction_notes(agreed: Agreement, columns: int) -> PredictionNotes:
    """The notes for an agreement and the number of Alice's prepared columns."""
    return PredictionNotes(_bobs(agreed), _alices(agreed), _repeated(agreed, columns))


def _shared(agreed: Agreement) -> bool:
    return mechanism(agreed).shares_weights


def _bobs(agreed: Agreement) -> str:
    if mechanism(agreed).shares_scores:
        return (
            "one number per row and model: the whole score, with noise of 2^-12 that Alice adds. "
            "He knows his own columns, and their weights only where Alice reveals them (reveal-bob)"
        )
    part, columns, adds = "Alice's part of the score", "her columns", "she adds"
    if agreed.alices > 1:
        part, columns = "the sum of all Alices' parts of the score", "all of their columns"
        adds = "each of them adds"
    return (
        f"one number per row and model: {part}, a linear function of {columns} with noise of "
        f"2^-12 that {adds} (he knows his own part and takes it off)"
    )


def _alices(agreed: Agreement) -> str:
    if _shared(agreed):
        seen = "she receives ciphertexts under Bob's key"
    else:
        seen = "she receives nothing but a greeting"
    return f"which rows, how many and when; no score and no label: {seen}"


def _repeated(agreed: Agreement, columns: int) -> str:
    known = (
        "where he knows the weights of one model, he has her one column"
        if columns == 1
        else f"{columns} models whose weights he knows give him all {columns} columns of a row, "
        "and fewer do where columns have few values"
    )
    cheating = (
        f". A Bob who does not keep to the protocol has all {columns} columns of a row after "
        f"{columns + 1} predictions of it with one model at most, and after fewer where several "
        "columns fit into one number"
        if _shared(agreed)
        else ""
    )
    return (
        "asking again with one model gives the same number with the same noise; each further model "
        f"of the same rows gives Bob one more combination, and {known}{cheating}. Alice decides "
        "how often she answers, or sets a limit: scores-per-row"
    )
