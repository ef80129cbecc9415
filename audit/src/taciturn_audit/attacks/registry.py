"""Registry of the attacks: built-in, and from other packages.

An attack of another package is loaded when an audit or a check is about to run it.

**Guarantee.** One that does not load, or answers with something other than a guess at every row, is
an error that names its package.

**Assumes.** An attack of another package looks at nothing but the view: nothing here keeps one from
looking for labels elsewhere.
"""

from __future__ import annotations

from taciturn import extensions
from taciturn.engine.callbacks import ReportProgress
from taciturn.extensions import Extension
from taciturn.protocol.observations import Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.gradient_statistics import GradientDirectionAttack, GradientNormAttack
from taciturn_audit.attacks.known_scores import KnownScoresAttack
from taciturn_audit.attacks.label_enumeration import LabelEnumerationAttack
from taciturn_audit.attacks.linear import ExactSolveAttack, LeastSquaresAttack
from taciturn_audit.attacks.moments import MomentsAttack
from taciturn_audit.attacks.released_residues import LikelihoodAttack, SignAttack
from taciturn_audit.attacks.sparse import SparseAttack
from taciturn_audit.attacks.stacking import StackingAttack
from taciturn_audit.attacks.values import ValuesAttack
from taciturn_audit.views.alice_view import AliceView

ATTACKS: tuple[Attack, ...] = (
    ExactSolveAttack(),
    LeastSquaresAttack(),
    SparseAttack(),
    KnownScoresAttack(),
    StackingAttack(),
    MomentsAttack(),
    LikelihoodAttack(),
    SignAttack(),
    GradientNormAttack(),
    GradientDirectionAttack(),
    LabelEnumerationAttack(),
    ValuesAttack(),
)
"""The attacks of this package."""


def attacks() -> tuple[Attack, ...]:
    """Every attack: ours, then those of other packages, which are loaded now.

    Raises ``ExtensionError`` where one is broken, or has the name of another.
    """
    return (*ATTACKS, *_added())


def rehearsal_attacks() -> tuple[Attack, ...]:
    """The same attacks, some content with fewer batches: for a check that takes seconds."""
    fewer: dict[str, Attack] = {
        SparseAttack.name: SparseAttack(most_batches=60, program=300.0),
        KnownScoresAttack.name: KnownScoresAttack(most_batches=300, nodes=10, work=5_000.0),
    }
    return tuple(fewer.get(attack.name, attack) for attack in attacks())


def added_attack(name: str) -> Attack | None:
    """The attack that another package adds under a name; None where none does.

    Raises ``ExtensionError`` where it is broken, or has the name of another.
    """
    ours = [attack.name for attack in ATTACKS]
    added = extensions.extension(extensions.ATTACKS, name, ours)
    return None if added is None else _checked(added)


def _added() -> tuple[Attack, ...]:
    several = (added_attack(name) for name in extensions.names(extensions.ATTACKS))
    return tuple(attack for attack in several if attack is not None)


def _checked(added: Extension) -> Attack:
    loaded = added.load()
    if not (isinstance(loaded, type) and issubclass(loaded, Attack)):
        added.refuse("is not a class that extends taciturn_audit.attacks.base.Attack")
    if missing := sorted(loaded.__abstractmethods__):
        added.refuse(f"lacks {', '.join(missing)}")
    if absent := [fact for fact in ("name", "reference", "needs") if not hasattr(loaded, fact)]:
        added.refuse(f"does not say its {', '.join(absent)}")
    with added.blamed("cannot be made without arguments"):
        attack = loaded()
    if attack.name != added.name:
        added.refuse(f"calls itself {attack.name}")
    if not all(isinstance(signal, Signal) for signal in attack.needs):
        added.refuse("needs something that is no Signal")
    return _Added(attack, added)


class _Added(Attack):
    """An attack of another package; its failures name that package."""

    def __init__(self, attack: Attack, origin: Extension) -> None:
        self._attack, self._origin = attack, origin
        self.name, self.needs, self.families = attack.name, attack.needs, attack.families
        self.reference = f"{attack.reference}, by {origin.distribution}"

    def obstacle(self, view: AliceView) -> str:
        with self._origin.blamed("failed"):
            return self._attack.obstacle(view)

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        with self._origin.blamed("failed"):
            guess: object = self._attack.infer(view, progress)
        if not (isinstance(guess, LabelGuess) and guess.covers(view.features.rows)):
            self._origin.refuse("does not answer with a LabelGuess of a finite score for every row")
        return guess
