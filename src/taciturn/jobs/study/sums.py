"""Sums that judge the settings of a study in ``mutual``: one noisy number for each.

The shares of a setting's folds are added up on each side, and opened together for all settings when
every model is trained (``protocol.row_sums``). A simulated study runs the same two programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taciturn.data.label_table import LabelTable
from taciturn.jobs.study.result import StudiedSetting
from taciturn.numerics.bounded_waves import base_loss
from taciturn.protocol.row_sums import OpenedLoss, RowSumPlan
from taciturn.settings.study import Point

MARGIN = 8.0
"""A sum is beyond a bound where it exceeds it by this many scales of its noise."""


def added_shares(
    plan: RowSumPlan, points: Sequence[Point], shares: Mapping[int, Sequence[int]]
) -> list[int]:
    """One side's share of each setting's sum; ``shares`` has those of its folds, by number."""
    return [sum(shares[point.number]) % plan.slots.modulus for point in points]


def judged_by_sum(
    setting: StudiedSetting, opened: OpenedLoss, labels: LabelTable
) -> StudiedSetting:
    """The setting with its sum; diverged where that lies below zero, or above the base rate's.

    The noise must not decide: an easy table's sum is near zero, and that of a large penalty near
    the base rate's.
    """
    margin = MARGIN * opened.noise_rows
    diverged = not -margin <= opened.total <= base_loss(labels) + margin
    mean = opened.total / labels.rows
    return setting.judged_by_sum(mean, labels.rows, opened.noise_rows, diverged=diverged)
