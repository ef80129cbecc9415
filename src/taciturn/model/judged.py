"""Everything that is asked of a model on one set of rows with scores and labels."""

from __future__ import annotations

from taciturn.model.scores_file import ScoredRows
from taciturn.numerics.bands import Bands
from taciturn.numerics.calibration_tests import (
    calibration_groups,
    calibration_line,
    hosmer_lemeshow,
    spiegelhalter,
)
from taciturn.numerics.metrics import evaluate
from taciturn.numerics.sorted_scores import (
    Costs,
    Ranked,
    cheapest,
    cutoffs,
    gains,
    ks_point,
    roc_points,
)
from taciturn.results.model_report import JudgedRows

TRAINING, HELD_OUT, NEW = "training", "held-out", "new"
# Which part of the rows is called ones.
_CALLED = (0.01, 0.02, 0.05, *(number / 10 for number in range(1, 10)))


def judged_rows(
    name: str, rows: ScoredRows, bands: Bands, shift: float = 0.0, costs: Costs | None = None
) -> JudgedRows:
    """The figures of a set of at least one row.

    ``bands`` are in logits as the training gave them; ``shift`` is by how much class weights have
    moved the logits.
    """
    fitted = name == TRAINING
    ranked, odds = Ranked.of(rows.scores, rows.labels), rows.scores - shift
    groups = calibration_groups(odds, rows.labels)
    return JudgedRows(
        name=name,
        fitted=fitted,
        metrics=evaluate(rows.scores, rows.labels, shift),
        ks=ks_point(ranked),
        roc=roc_points(ranked),
        gains=gains(ranked),
        groups=groups,
        hosmer_lemeshow=hosmer_lemeshow(groups, fitted=fitted),
        spiegelhalter=spiegelhalter(odds, rows.labels),
        line=calibration_line(odds, rows.labels),
        cutoffs=cutoffs(ranked, _CALLED, shift, costs),
        cheapest=None if costs is None else cheapest(ranked, costs, shift),
        bands=bands.rows(rows.scores, rows.labels, shift),
    )
