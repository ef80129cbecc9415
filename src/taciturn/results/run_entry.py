"""One run in a list of runs: what it was, how good its model is, what it told and cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Leakage:
    """Labels that the best attack recovered, and the best control by the same figure.

    ``labels`` says of which labels: shuffled before training, which only messages can tell, or the
    true ones. ``attack`` is None where none of ours applies, and then its figures are. ``beyond``
    is how far the attack's figure lies beyond the control's; ``shown`` says whether its whole
    interval does.
    """

    labels: Literal["shuffled", "true"]
    figure: Literal["accuracy", "AUC"]
    attack: str | None
    value: float | None
    low: float | None
    high: float | None
    control: str
    known: float
    beyond: float | None
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One run of a folder, or one mechanism of a comparison.

    ``part`` names the mechanism where the folder has several, and is empty otherwise. ``auc`` is of
    the model on held-out rows, with the ends of its 95 % interval where they are known.
    ``label_epsilon`` is the ledger's total. ``verdict`` is what an audit or a check came to, in a
    few words. ``seconds`` and ``bytes`` are of the training, forecast where ``forecast`` says so.
    What a run does not say is None.
    """

    name: str
    path: str
    part: str
    started: str
    kind: str
    private: bool
    version: str
    dataset: str
    mechanism: str | None
    epsilon: float | None
    solver: str | None
    scheme: str | None
    seed: int | None
    seeds: int
    rows: int | None
    held_out_rows: int | None
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    label_epsilon: float | None
    leakage: Leakage | None
    verdict: str | None
    seconds: float | None
    bytes: float | None
    forecast: bool
