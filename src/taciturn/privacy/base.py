"""``Released``, and what a mechanism is: one class that owns every fact about itself.

``Released`` is the only form in which something that depends on labels may leave Bob in clear.

A mechanism extends the class of the conversation that trains with it: ``ResidueMechanism`` where
Alice receives each residue, ``GradientMechanism`` where she receives the gradient of a batch. No
other file knows a mechanism by its name or class; other code asks the mechanism.
The defaults are right for a new one.

**Guarantee.** None by itself: the event says what a value was protected with, and the ledger its
price.

**Assumes.** Programs pass values through their mechanism; the codec refuses a bare one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from taciturn.arrays import FloatArray, IntArray, LabelArray
from taciturn.errors import ConfigError
from taciturn.families.base import RowLikelihood
from taciturn.families.registry import BINOMIAL
from taciturn.numerics.likelihood import weighted_likelihood
from taciturn.numerics.logistic import weighted_residue
from taciturn.privacy.events import NonPrivate, PrivacyEvent
from taciturn.privacy.prices import Priced
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint, hyphenated
from taciturn.settings.agreement import Agreement
from taciturn.settings.checked import Checked, declared
from taciturn.settings.schema import (
    DEFAULT_PASSES,
    DEFAULT_SEVERAL_PASSES,
    DEFAULT_TOLD_PASSES,
    MOST_PARTIES,
    Protection,
    Settings,
    SolverName,
)

if TYPE_CHECKING:
    from taciturn.data.label_table import LabelTable
    from taciturn.privacy.batch_response import BatchDesign


T = TypeVar("T")

MaskedProduct: TypeAlias = tuple[int, ...]
"""A masked product as its key's owner decrypts it: non-negative integers."""

_DECLARED = declared(Protection)


@dataclass(frozen=True, slots=True)
class Released(Generic[T]):
    """A value together with the event that its release is."""

    value: T = field(repr=False)
    event: PrivacyEvent

    @classmethod
    def unprotected(cls, value: T) -> Released[T]:
        """Release a value unprotected, at an infinite price."""
        return cls(value, NonPrivate())


class LabelFlips(Protocol):
    """Labels that are replaced by random answers before a training sees them."""

    @property
    def event(self) -> PrivacyEvent:
        """Event of the answers: charged to every row once, before any is drawn."""

    @property
    def gradient_event(self) -> PrivacyEvent:
        """Event of a value computed from the answers: paid for with them."""

    @property
    def epsilon(self) -> float:
        """Epsilon of the answers; another epsilon gives other answers."""

    @property
    def keep(self) -> float:
        """Probability that an answer is the true label: the limit of every attack."""

    def respond(self, labels: LabelTable, entropy: Entropy) -> LabelTable:
        """Answers drawn from fresh entropy."""


class Sharing(IntEnum):
    """What the parties hold as random shares in a training; each level includes those before it."""

    NOTHING = 0
    WEIGHTS = 1
    """Alice's weights: each party ends with a share of them, and neither with the weights."""
    SCORES = 2
    """Bob's weights and the scores as well: nobody sees a score in the training."""


ScoreForm: TypeAlias = Literal["real", "integer"]
"""A score in clear is a real of 53 bits; one from shared weights is an integer modulo ``2^k``."""

_SCORE_FORMS: Mapping[Sharing, ScoreForm | None] = MappingProxyType(
    # Where scores are shared, none is computed for him to read, whatever weights he makes up.
    {Sharing.NOTHING: "real", Sharing.WEIGHTS: "integer", Sharing.SCORES: None}
)

COLUMNS_EXPOSED = "Bob can reconstruct Alice's columns"


class Mechanism(ABC):
    """A protection of labels, and all that others need to know about it.

    Known by the name alone:
        name: In settings, tables and errors.
        summary: What it does, in one line.
        takes: The settings of the project's protections that it takes.
        settings: Model of the settings that it declares itself; None for none. A mechanism of
            another package extends ``Checked``, and declares each field with a ``Setting``.
        defaults: Values for those of them that need not be given.
        prices: Its events with their prices, where they are not among ours (``events``).
        unprotected: Sides whose data no setting protects: Bob's labels, where every price is
            infinite; Alice's columns, where Bob receives scores of training rows.
        families: Families of labels that it can train.
        most_alices: Largest number of Alices.
        meaning: What a predicted probability is the probability of.

    Known once it is agreed on, and said by the class or by the object:
        conversation: Which pair of programs trains with it.
        event: What one release is.
        assumption: What the ledger's figures rest on.
        lossless: Whether the model is that of training on the joined table, up to rounding.
        sharing: What the parties hold as random shares.
        label_flips: How labels are flipped before the training; None where they are not.
        hidden_batch: The sizes of a batch that is hidden from Alice; None where she knows it.
        chosen_scores: Form of the scores that a deviating Bob receives for weights of his choice,
            by which he reads single columns of Alice's; None where he cannot choose weights.
        solvers: What can train with it: sgd by batches, newton over all rows at once. For newton
            it says the rows' likelihood, and nothing of it rests on batches.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    settings: ClassVar[type[Checked] | None] = None
    defaults: ClassVar[Mapping[str, object]] = MappingProxyType({})
    prices: ClassVar[tuple[Priced[Any], ...]] = ()
    unprotected: ClassVar[frozenset[str]] = frozenset({"alice"})
    families: ClassVar[tuple[str, ...]] = (BINOMIAL,)
    most_alices: ClassVar[int] = MOST_PARTIES
    meaning: ClassVar[str] = "of a label 1, for rows like the training rows"

    conversation: str
    event: PrivacyEvent
    assumption: str
    lossless: bool = False
    sharing: Sharing = Sharing.NOTHING
    label_flips: LabelFlips | None = None
    hidden_batch: BatchDesign | None = None
    solvers: tuple[SolverName, ...] = ("sgd",)

    @classmethod
    @abstractmethod
    def from_agreement(cls, agreed: Agreement) -> Mechanism:
        """The mechanism of an agreement that names it; ``given`` reads a required setting."""

    @classmethod
    def own_settings(cls, agreed: Agreement) -> Any:  # noqa: ANN401 - of the type of ``settings``
        """The settings that this mechanism declares, as agreed on, with their defaults."""
        if cls.settings is None:
            raise TypeError(f"{cls.__name__} declares no settings")
        return cls.settings.from_mapping(agreed.mechanism_settings or {})

    @classmethod
    def underlying(cls, base_mechanism: str | None) -> type[Mechanism] | None:
        """The mechanism in whose conversation this one runs; None if it has its own."""
        return None

    @classmethod
    def row_defaults(cls, settings: Settings, rows: int) -> Mapping[str, object]:
        """Settings of newton, where they are not given, for this many training rows."""
        if settings.reveal_epsilon is not None:
            return {"passes": DEFAULT_TOLD_PASSES}
        return {"passes": DEFAULT_PASSES if settings.parties == 1 else DEFAULT_SEVERAL_PASSES}

    @classmethod
    def derived(
        cls, settings: Settings, filled: Mapping[str, Any], columns: int, rows: int
    ) -> Mapping[str, object]:
        """Settings that follow from the tables.

        ``settings`` are those asked for, with the dataset's defaults; ``filled`` those that the
        mechanism takes, with its own defaults. ``columns`` are Alice's.
        """
        return {}

    @property
    def share_event(self) -> PrivacyEvent:
        """Event of releasing Bob's share of Alice's weights; flipped labels have paid for it."""
        return NonPrivate() if self.label_flips is None else self.label_flips.gradient_event

    @property
    def chosen_scores(self) -> ScoreForm | None:
        """Form of scores for weights that a deviating Bob chooses; None where he cannot."""
        return _SCORE_FORMS[self.sharing]

    @classmethod
    def exposes(cls) -> str:
        """What a training exposes to Alice, and of her columns to Bob."""
        columns = COLUMNS_EXPOSED if "alice" in cls.unprotected else "Bob sees no training score"
        return f"{cls.summary}; {columns}"

    @classmethod
    def required_settings(cls) -> tuple[str, ...]:
        """Settings that a template file shows: those without a default."""
        return tuple(name for name in cls.takes if name not in cls.defaults)

    @classmethod
    def rehearsal_rows(cls, settings: Settings) -> int:
        """Number of rows that a small training needs to be like the real one; 0 for any."""
        return 0

    def receives(self) -> str:
        """Label-dependent values that Alice receives, as the end of "Alice receives ..."."""
        return f"what {self.name} says of itself: {self.summary}"

    def notes(self) -> tuple[str, ...]:
        """Remarks for a reader of a training's record."""
        return ()

    def advice(self, attack: str) -> Hint | None:
        """Advice where an attack succeeds; None leaves the search to ``taciturn check``."""
        return None


class EncryptedMechanism(Mechanism):
    """A mechanism that sends residues encrypted under Bob's key: its conversation has a scheme."""

    @abstractmethod
    def residue(self, scores: FloatArray, labels: LabelArray) -> FloatArray:
        """Residue that is encrypted: the slope of each row's log likelihood in the score."""

    def likelihood(self, scores: FloatArray, labels: LabelArray) -> RowLikelihood:
        """Likelihood with the slope ``residue``; of a mechanism that ``newton`` can train."""
        raise ConfigError(f"{self.name} trains by batches, not on whole tables", setting="solver")


class ClassWeighted(EncryptedMechanism):
    """Optional interface of a mechanism whose rows may count by their label.

    Residues of any size within [-1, 1] are as well protected as others, and attacks know of the
    weights.
    """

    class_weight: tuple[float, float] | None = None

    def residue(self, scores: FloatArray, labels: LabelArray) -> FloatArray:
        """``y - sigma(z)`` times the weight of its class."""
        return weighted_residue(scores, labels, self.class_weight)

    def likelihood(self, scores: FloatArray, labels: LabelArray) -> RowLikelihood:
        """Likelihood of the labels, times the weight of their class."""
        if "newton" not in self.solvers:
            return super().likelihood(scores, labels)
        return weighted_likelihood(scores, labels, self.class_weight)


class SizedByColumns(Mechanism):
    """Optional interface of a mechanism whose settings depend on Alice's number of columns.

    Both parties must know that number, so that they derive the same settings.
    """

    @classmethod
    @abstractmethod
    def derived(
        cls, settings: Settings, filled: Mapping[str, Any], columns: int, rows: int
    ) -> Mapping[str, object]:
        """Settings that follow from Alice's number of columns."""


class PaidModel(Mechanism):
    """Optional interface of a mechanism whose model follows from what was released and charged.

    A value computed from both sides' weights and from other rows costs training labels nothing
    more.
    """


class GradientMechanism(EncryptedMechanism):
    """A mechanism that returns a masked gradient to Alice."""

    conversation = "revealed"

    @property
    def gradient_event(self) -> PrivacyEvent:
        """Event of ``release``: the mechanism's own, unless that is another release."""
        return self.event

    @abstractmethod
    def release(self, secret: MaskedProduct, entropy: Entropy) -> Released[MaskedProduct]:
        """Gradient in the form that Bob may send."""


class Draws(Protocol):
    """Random numbers for the rows of several batches, with slicing."""

    def __getitem__(self, rows: slice, /) -> Any:  # noqa: ANN401 - an array's own type, or a class
        """The draws of some rows."""


D = TypeVar("D", bound=Draws)

NOISE_DEFAULTS: Mapping[str, object] = MappingProxyType(
    {"noise": "discrete", "bob_update": "released"}
)
"""What holds of noise, where a mechanism takes these two settings and neither is given."""


class ResidueMechanism(PaidModel, Generic[D]):
    """A mechanism that sends Alice each residue of a batch, with noise.

    Residues and released values are integers on the residues' grid, multiples of
    ``2^-residue_bits``. Bob's weights with true updates are not paid for, and make every total
    infinite by themselves.
    """

    conversation = "residues"
    assumption = "each release alone is protected, and releases add up: basic composition"
    meaning = (
        "of a label 1, for rows like the training rows; the training's residues were noisy, so "
        "check its calibration on held-out rows before you rely on it"
    )

    @property
    def chosen_scores(self) -> None:
        """None: Bob chooses residues, and the weights also depend on columns he does not know."""
        return None

    @abstractmethod
    def draw(self, count: int, entropy: Entropy) -> D:
        """Fresh random numbers for ``count`` residues, independent of each other."""

    @abstractmethod
    def release(self, residues: IntArray, draws: D) -> Released[IntArray]:
        """Residues in the form that Bob may send: a function of the draws."""

    @abstractmethod
    def log_probability(self, released: IntArray, residues: IntArray) -> FloatArray:
        """Logarithm of the exact probability of each released integer, given its residue."""

    def release_real(self, residues: FloatArray, entropy: Entropy) -> Released[FloatArray]:
        """The formula as printed, in floating point: simulations only."""
        raise ConfigError(f"{self.name} has no continuous noise", setting="noise")

    def log_density(self, released: FloatArray, residues: FloatArray) -> FloatArray:
        """Log density of ``release_real``, and a log probability at an atom."""
        raise ConfigError(f"{self.name} has no continuous noise", setting="noise")


class SignPreserving(ResidueMechanism[D]):
    """Optional interface: released values keep the residue's sign, which is the label."""


def given(agreed: Agreement, name: str) -> Any:  # noqa: ANN401 - the setting's own type
    """A setting that the mechanism requires; raises ``ConfigError`` where it is not given."""
    value = getattr(agreed, name)
    if value is None:
        # A subset is several batches; how many it must be, the number of columns says.
        example = _DECLARED[name].example or 8 * agreed.sgd.batch_size
        raise ConfigError(
            f"{agreed.mechanism} needs {hyphenated(name)}",
            setting=name,
            hint=Hint(f"use {{{name}}}, for example", **{name: example}),
        )
    return value


REVEALED = (
    "no protection: Bob's share of the weights is released at the end, and a malicious Alice may "
    "have had any label put into it; until then IND-CPA encryption, semi-honest parties"
)


def require_sealable(agreed: Agreement, name: str = "sealed") -> None:
    """Refuse settings that need a weight, or let Bob's behaviour depend on labels."""
    if agreed.patience is not None:
        raise ConfigError(
            f"{name} does not stop early: when Bob stops depends on labels, and Alice sees it",
            setting="patience",
            hint=Hint("leave {patience} out; the number of passes is fixed"),
        )
