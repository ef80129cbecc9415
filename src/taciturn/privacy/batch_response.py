"""``hybrid``: the batch hides in a larger subset, behind a randomised response [Tan22, Table I].

Bob draws a subset S of the rows and marks ``q|S|`` of them, the indicator m. Alice gets S and
``RR(m)``, in which each bit is kept with probability ``p = e^eps/(1+e^eps)``. She scores the rows
with ``RR(m) = 1``; ``L_RR = q|S|p + (1-q)|S|(1-p)`` is their expected number. Marked rows among
them are the true batch, k of them; the others get a residue of zero. A marked row that the response
turned to 0 is not scored, so it has no residue, and takes no part in this iteration.

The paper requires ``d_A < L_RR < |S|``, ``0 < q < 1/2`` and ``1/2 < p < 1``: more unknowns than
equations. A realised L_RR can still fall to d_A or below, in a noticeable share of draws; the draw
is then thrown away whole, subset, marks and response, and made anew.

**Guarantee.** None for labels: the gradient leaves in clear, and its residues are sparse, which is
what sparse recovery needs. Of the response alone: epsilon per bit, 2 epsilon between two indicators
that differ by a swap (all have the same number of marks). Redrawing conditions on the *number* of
ones in RR(m), whose distribution is the same for every indicator with q|S| marks: ratios between
those are unchanged. Between indicators with different numbers of marks it adds the logarithm of
the two acceptance probabilities' ratio (``conditioning``).

**Assumes.** Nothing that would help: together with the gradient there is no guarantee for
membership or k either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IndexArray
from taciturn.errors import ConfigError
from taciturn.privacy.base import (
    ClassWeighted,
    GradientMechanism,
    MaskedProduct,
    Released,
    SizedByColumns,
    given,
)
from taciturn.privacy.events import BatchResponse, HiddenBatchGradient
from taciturn.privacy.noise import response_flips
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import DATASET_DEFAULTS, OWN_DATA_DEFAULTS, Settings

# A design whose response is almost never long enough would be redrawn forever.
_MOST_REDRAWS = 10_000
_SPARSE = 4
_TOO_FEW_ROWS = Hint("use a smaller {batch_size} or {epsilon}: there are too few rows for this one")


@dataclass(frozen=True, slots=True)
class BatchDesign:
    """Sizes of a hidden batch: |S| is ``subset`` and q|S| is ``marked``."""

    subset: int
    marked: int
    epsilon: float

    @classmethod
    def for_batch(cls, batch_size: int, epsilon: float, subset: int) -> BatchDesign:
        """The design whose true batch has ``batch_size`` rows on average."""
        keep = cls(1, 1, epsilon).keep
        if not 0.5 < keep < 1:
            raise ConfigError(
                f"hybrid needs 1/2 < p < 1, and epsilon {epsilon:g} gives p = {keep:g}",
                setting="epsilon",
                hint="use a value between 0 and 36",
            )
        return cls(subset, max(1, round(batch_size / keep)), epsilon)

    @property
    def keep(self) -> float:
        """p: probability that a bit of the indicator is kept."""
        return 1.0 / (1.0 + math.exp(-self.epsilon))

    @property
    def share(self) -> float:
        """q: share of marked rows."""
        return self.marked / self.subset

    @property
    def true_rows(self) -> float:
        """Expected size of the true batch, ``q|S|p``."""
        return self.marked * self.keep

    @property
    def asked_rows(self) -> float:
        """Expected number of rows that Alice scores, L_RR."""
        return self.true_rows + (self.subset - self.marked) * (1.0 - self.keep)

    def require(self, columns: int, rows: int) -> None:
        """Refuse what the paper's requirement forbids, with the smallest change that helps."""
        if self.asked_rows <= columns:
            raise ConfigError(
                f"hybrid needs d_A < L_RR, and {columns} < {self.asked_rows:.1f} does not hold",
                setting="l_rr",
                hint=self._larger(columns, rows),
            )
        if 2 * self.marked >= self.subset:
            raise ConfigError(
                f"hybrid needs q < 1/2, and {self.marked} of {self.subset} rows are marked",
                setting="l_rr",
                hint=self._larger(columns, rows),
            )
        if self.subset > rows:
            raise ConfigError(
                f"hybrid needs a subset of {self.subset} rows, and there are {rows}",
                setting="subset_size",
                hint=self._smaller(columns, rows),
            )

    def _larger(self, columns: int, rows: int) -> Hint:
        """The smallest sizes that meet both lower bounds, where there are rows enough."""
        ones = _unmarked_for(columns - self.true_rows, self.keep)
        subset = max(self.marked + ones, 2 * self.marked + 1)
        least = max(columns + 1, math.ceil(replace(self, subset=subset).asked_rows))
        if max(subset, self._subset_of(least)) > rows:
            return _TOO_FEW_ROWS
        return Hint("use {l_rr} or more, or {subset_size} or more", l_rr=least, subset_size=subset)

    def _smaller(self, columns: int, rows: int) -> Hint:
        """The largest size that there are rows for, where it meets the lower bounds."""
        most = replace(self, subset=rows)
        if most.asked_rows <= columns + 1 or 2 * self.marked >= rows:
            return _TOO_FEW_ROWS
        return Hint(
            "use {subset_size} or less, or a smaller {epsilon} or {batch_size}", subset_size=rows
        )

    def _subset_of(self, asked: int) -> int:
        return self.marked + _unmarked_for(asked - self.true_rows, self.keep, inclusive=True)

    @property
    def event(self) -> HiddenBatchGradient:
        """Event of releasing the batch's gradient."""
        return HiddenBatchGradient(self.epsilon)


def design(
    batch_size: int,
    epsilon: float,
    columns: int,
    rows: int,
    *,
    subset_size: int | None = None,
    l_rr: int | None = None,
) -> BatchDesign:
    """The paper's sizes for a batch of ``batch_size`` true rows on average.

    ``columns`` are Alice's, d_A. ``l_rr`` is the expected number of rows that Alice scores; without
    it and ``subset_size``, a tenth more than the requirement asks for.
    """
    if subset_size is not None and l_rr is not None:
        raise ConfigError(
            "subset-size and l-rr determine each other", setting="subset_size", hint="give one"
        )
    sizes = BatchDesign.for_batch(batch_size, epsilon, subset_size or 1)
    if subset_size is None:
        # More than d_A for the first inequality; more than q|S| makes q < 1/2, the second.
        least = max(columns + 1, sizes.marked + 1)
        target = math.ceil(1.1 * least) if l_rr is None else l_rr
        sizes = replace(sizes, subset=sizes._subset_of(target))
    sizes.require(columns, rows)
    return sizes


def _unmarked_for(beyond: float, keep: float, *, inclusive: bool = False) -> int:
    """Number of unmarked rows that give ``beyond`` ones (or, not inclusive, more) on average."""
    exact = max(0.0, beyond) / (1.0 - keep)
    # The rounding of an exact quotient must not ask for one row more.
    return math.ceil(exact - 1e-9) if inclusive else math.floor(exact + 1e-9) + 1


def acceptance(design: BatchDesign, columns: int) -> float:
    """Probability that a draw has more than ``columns`` ones."""
    return float(_ones(design)[columns + 1 :].sum())


def conditioning(design: BatchDesign, columns: int) -> float:
    """Epsilon that redrawing adds to the response between indicators that differ in one bit.

    Indicators of one draw all have the same number of marks, and between those it adds nothing.
    """
    here = acceptance(design, columns)
    others = (replace(design, marked=design.marked + step) for step in (-1, 1))
    return max(abs(math.log(acceptance(other, columns) / here)) for other in others)


def _ones(design: BatchDesign) -> FloatArray:
    """The distribution of the number of ones in RR(m)."""
    kept = _binomial(design.marked, design.keep)
    others = design.subset - design.marked
    flipped = _binomial(others, 1.0 - design.keep)
    return np.asarray(np.convolve(kept, flipped))


def _binomial(count: int, chance: float) -> FloatArray:
    """Probability mass function, for a chance strictly between 0 and 1."""
    heads = np.arange(count + 1)
    factorials = np.array([math.lgamma(number + 1) for number in range(count + 1)])  # in logarithms
    ways = factorials[-1] - factorials - factorials[::-1]
    logs = ways + heads * math.log(chance) + (count - heads) * math.log1p(-chance)
    return np.asarray(np.exp(logs))


@dataclass(frozen=True, slots=True)
class HiddenBatch:
    """One draw: the subset and response that Alice sees, and the marks that only Bob knows.

    ``subset`` is in ascending order, so that it tells nothing of the marks m; ``response`` is
    RR(m). ``redraws`` counts the draws thrown away before.
    """

    subset: IndexArray = field(repr=False)
    response: BoolArray = field(repr=False)
    marks: BoolArray = field(repr=False)
    redraws: int

    @property
    def asked(self) -> IndexArray:
        """The rows that Alice scores."""
        return self.subset[self.response]

    @property
    def true(self) -> BoolArray:
        """Which of ``asked`` are the batch."""
        return self.marks[self.response]


def draw_batch(design: BatchDesign, columns: int, rows: int, entropy: Entropy) -> HiddenBatch:
    """Draw subset, marks and response, whole, until more than ``columns`` rows are asked."""
    for redraws in range(_MOST_REDRAWS):
        subset, marks = _marked_subset(design, rows, entropy)
        response = marks ^ response_flips(design.epsilon, len(marks), entropy)
        if np.count_nonzero(response) > columns:
            return HiddenBatch(subset, response, marks, redraws)
    raise ConfigError(
        f"no response of {_MOST_REDRAWS} had more than {columns} ones",
        setting="l_rr",
        hint=Hint("raise {l_rr} or {subset_size}"),
    )


def _marked_subset(
    design: BatchDesign, rows: int, entropy: Entropy
) -> tuple[IndexArray, BoolArray]:
    chosen = _distinct(design.subset, rows, entropy)
    order = np.argsort(chosen)
    # Drawn in random order, the first ones are a random choice; sorting then hides which they are.
    return chosen[order], order < design.marked


def _distinct(count: int, rows: int, entropy: Entropy) -> IndexArray:
    if count * _SPARSE > rows:
        return entropy.permutation(rows)[:count]
    chosen: dict[int, None] = {}
    while len(chosen) < count:
        missing = count - len(chosen)
        chosen.update(dict.fromkeys(entropy.integers(rows, missing).tolist()))
    return np.fromiter(chosen, dtype=np.int64, count=count)


class Hybrid(ClassWeighted, GradientMechanism, SizedByColumns):
    """The paper's hybrid mechanism."""

    name = "hybrid"
    summary = "the batch hides in a larger subset, and its gradient goes to Alice: no protection"
    takes = ("epsilon", "subset_size", "l_rr")
    defaults = MappingProxyType({"epsilon": 1.0})
    unprotected = frozenset({"alice", "bob"})
    # Each would have a response of her own to the same batch, which is not priced.
    most_alices = 1
    conversation = "hidden-batch"
    lossless = True
    assumption = (
        "no protection: the batch's gradient is released without noise, and its residues are sparse"
    )

    def __init__(
        self, design: BatchDesign, class_weight: tuple[float, float] | None = None
    ) -> None:
        self.design = self.hidden_batch = design
        self.class_weight = class_weight
        self.event = design.event

    @classmethod
    def from_agreement(cls, agreed: Agreement) -> Hybrid:
        """The mechanism of an agreement."""
        epsilon, subset = given(agreed, "epsilon"), given(agreed, "subset_size")
        return cls(
            BatchDesign.for_batch(agreed.sgd.batch_size, epsilon, subset), agreed.class_weight
        )

    @classmethod
    def derived(
        cls, settings: Settings, filled: Mapping[str, Any], columns: int, rows: int
    ) -> Mapping[str, object]:
        """Size of the subset, from L_RR or from Alice's columns."""
        l_rr = settings.l_rr
        if l_rr is None and settings.subset_size is None:
            usual = DATASET_DEFAULTS.get(settings.dataset or "", OWN_DATA_DEFAULTS)
            # The paper's L_RR fits the paper's batch size.
            l_rr = usual.l_rr if settings.batch_size == usual.batch_size else None
        sizes = design(
            settings.batch_size or 1,
            filled["epsilon"],
            columns,
            rows,
            subset_size=settings.subset_size,
            l_rr=l_rr,
        )
        return {"subset_size": sizes.subset}

    @classmethod
    def required_settings(cls) -> tuple[str, ...]:
        """Alice's columns, from which both parties derive the size of the subset."""
        return ("alice_columns",)

    @classmethod
    def rehearsal_rows(cls, settings: Settings) -> int:
        """Enough rows for many subsets, so that batches hide in different ones."""
        return 12 * (settings.batch_size or 1) + 8 * (settings.l_rr or 100)

    def receives(self) -> str:
        """The response, and the gradients."""
        return (
            "which rows may be in each hidden batch, and the batch's gradient without noise: "
            "labels can be computed from it"
        )

    @property
    def response_event(self) -> BatchResponse:
        """Event of telling RR(m)."""
        return BatchResponse(self.design.epsilon)

    def release(self, secret: MaskedProduct, entropy: Entropy) -> Released[MaskedProduct]:
        """The masked gradient unchanged."""
        return Released(secret, self.event)
