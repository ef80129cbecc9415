"""Comparison of mechanisms on the same rows: the model, recovered labels, the cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from taciturn.results.cost_preview import Estimate
from taciturn.results.figures import HELD_OUT, cost_values
from taciturn.results.run_entry import Leakage
from taciturn.results.serialise import OMITTED, Result, Subject
from taciturn.results.training import TRAINED_ON, DataFacts
from taciturn_audit.results.figures import leakage_values

if TYPE_CHECKING:
    from taciturn.report.blocks import Block, Page
    from taciturn.results.figures import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class BestAttack:
    """Best attack and best control by the figure of the comparison.

    ``attack`` is None where none of ours applies, and so are its figures. ``leak``: an attack told
    more than every control, by its accuracy or its AUC.
    """

    attack: str | None
    value: float | None
    low: float | None
    high: float | None
    control: str
    known: float
    leak: bool


_BOUNDED = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMechanism:
    """One mechanism: its model on held-out rows, its ledger, the attacks, and what it will cost.

    ``shuffled`` is of a training on labels shuffled beforehand, which only messages can tell, and
    ``real`` of the training itself. ``estimate`` is with the agreed encryption.
    ``bob_reconstructs``: whether a semi-honest Bob can reconstruct Alice's columns from the scores
    that the training opens to him; None in a record of an earlier version.
    """

    mechanism: str
    epsilon: float | None
    solver: str
    accuracy: float | None
    auc: float | None
    label_epsilon_total: float
    assumption: str
    shuffled: BestAttack
    real: BestAttack
    verdict: str
    estimate: Estimate
    bob_reconstructs: bool | None = field(default=None, metadata=OMITTED)

    @property
    def unprotected(self) -> bool:
        """Whether the ledger is infinite: nothing bounds what Alice learns about a label."""
        return math.isinf(self.label_epsilon_total)

    @property
    def cleared(self) -> bool:
        """Whether the ledger bounds what Alice learns and no attack recovered labels."""
        return not self.unprotected and not self.shuffled.leak

    @property
    def bounded(self) -> bool:
        """Whether the ledger keeps Alice, from even odds, below 99.4 % certainty about a label."""
        return self.label_epsilon_total <= _BOUNDED


@dataclass(frozen=True, slots=True)
class RefusedMechanism:
    """A mechanism that these settings exclude, and why."""

    mechanism: str
    epsilon: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Result):
    """Mechanisms on the same rows, each trained and attacked without encryption.

    ``ranked_by`` is the figure in which attacks are given: the AUC where one label is rare.
    ``bob_alone_auc`` is that of Bob's columns without Alice's. Of several Alices the
    one with most columns attacks.
    """

    kind: ClassVar[str] = "compare"
    known_by: ClassVar[str] = "ranked_by"

    data: DataFacts = field(metadata=TRAINED_ON)
    seed: int
    seeds: int
    scheme: str
    key_bits: int
    ranked_by: Literal["accuracy", "AUC"]
    centralised_auc: float | None
    bob_alone_auc: float | None
    compared: tuple[ComparedMechanism, ...]
    refused: tuple[RefusedMechanism, ...]
    audited: str | None = field(default=None, metadata=OMITTED)
    version: str | None = field(default=None, metadata=OMITTED)
    command: str | None = field(default=None, metadata=OMITTED)

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        from taciturn_audit.report.compare import compare_blocks

        return compare_blocks(self)

    def page(self, made: str = "") -> Page:
        """The comparison as a page."""
        from taciturn_audit.report.compare import compare_page

        return compare_page(self)

    def subject(self) -> Subject:
        """The rows and both sides' columns; the mechanisms differ."""
        return self.data.subject(None)

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run for each mechanism, whose cost is forecast."""
        return tuple(_part(row, self, bare) for row in self.compared)


def _part(compared: ComparedMechanism, whole: Comparison, bare: Part) -> Part:
    cost = compared.estimate
    entry = replace(
        bare.entry,
        part=_spelled(compared),
        mechanism=compared.mechanism,
        epsilon=compared.epsilon,
        solver=compared.solver,
        scheme=whole.scheme,
        seed=whole.seed,
        seeds=whole.seeds,
        auc=compared.auc,
        label_epsilon=compared.label_epsilon_total,
        leakage=_best(compared.shuffled, whole, shuffled=True),
        verdict=None,
        seconds=cost.seconds,
        bytes=float(cost.bytes_to_alice + cost.bytes_to_bob),
        forecast=True,
    )
    model = {
        f"AUC, {HELD_OUT}": compared.auc,
        f"accuracy, {HELD_OUT}": compared.accuracy,
        "AUC, Bob alone": whole.bob_alone_auc,
        "AUC, centralised": whole.centralised_auc,
    }
    values = {
        **{f"model/{name}": value for name, value in model.items() if value is not None},
        "ledger/label epsilon, total": compared.label_epsilon_total,
        **leakage_values(entry.leakage),
        **leakage_values(_best(compared.real, whole, shuffled=False)),
        **cost_values(cost.seconds, cost.iterations, cost.bytes_to_alice, cost.bytes_to_bob),
    }
    own = {"mechanism": compared.mechanism, "epsilon": compared.epsilon, "solver": compared.solver}
    return replace(bare, entry=entry, values=values, settings={**bare.settings, **own})


def _spelled(compared: ComparedMechanism) -> str:
    return (
        compared.mechanism
        if compared.epsilon is None
        else f"{compared.mechanism}:{compared.epsilon:g}"
    )


def _best(best: BestAttack, whole: Comparison, *, shuffled: bool) -> Leakage:
    return Leakage(
        labels="shuffled" if shuffled else "true",
        figure=whole.ranked_by,
        attack=best.attack,
        value=best.value,
        low=best.low,
        high=best.high,
        control=best.control,
        known=best.known,
        beyond=None if best.value is None else best.value - best.known,
        shown=best.leak,
    )
