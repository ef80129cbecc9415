"""``Agreement``: the part of the settings that both parties must share.

Its canonical text travels in the handshake, and a difference is named key by key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from taciturn.errors import ConfigError, nearest
from taciturn.families.base import Family
from taciturn.families.registry import FAMILIES
from taciturn.files import canonical_json
from taciturn.setting_syntax import Hint, SettingSyntax, hyphenated
from taciturn.settings.checked import (
    ClassWeight,
    NonNegative,
    Positive,
    PositiveInt,
    Scope,
    declared,
    named,
    setting,
)
from taciturn.settings.mechanism_settings import FIELD, collected
from taciturn.settings.schema import (
    SOLVERS,
    Evaluate,
    FamilyName,
    Newton,
    Parties,
    Protection,
    Settings,
    Sgd,
    ShareMetrics,
)

MOST_DIFFERENCES = 40
# What a simulation sets too, and means the same by. Its number of parties is none of it: an
# agreement has their names.
ALSO_SIMULATED = frozenset(
    [name for name, setting in declared(Settings).items() if setting.scope is Scope.AGREEMENT]
    + [FIELD]
)
Penalties = Annotated[
    tuple[Positive, ...],
    Field(min_length=2),
    # JSON has lists.
    BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given),
]
FewLabels = Literal["refused", "accepted"]
ACCEPTED_FEW: FewLabels = "accepted"
# What Bob writes as accept-leak, and Alice as accept-column-exposure, word for word.
ACCEPTED_LEAK = "my labels will be readable"
ACCEPTED_EXPOSURE = "my columns can be reconstructed"
LEAST_LABELS = 20
"""Training labels of each class without which Bob's side does not begin, unless agreed on."""


class Agreement(Protection):
    """Settings that both parties must share before anything is sent that costs privacy."""

    section: ClassVar = "agreement"

    # A field without a ``setting`` is declared in ``Settings``; what may be None there has a value
    # once it is agreed on.
    mechanism: str
    scheme: str
    key_bits: Annotated[int, Field(ge=0)]
    # In texts its settings stand beside its name.
    solver: Sgd | Newton
    evaluate: Evaluate = setting("end")
    """When Bob evaluates the held-out rows: at the `end`, or also after every `epoch`.

    Each evaluation gives him Alice's scores of these rows.
    """
    patience: PositiveInt | None = setting(example=3)
    """Early stopping: stop after this many epochs without a lower held-out loss. It depends on
    labels: epsilon is infinite.

    Needs `epoch` as the value of `evaluate`.
    """
    held_out: Annotated[float, Field(gt=0, lt=1)] | None = setting(file_default=0.2)
    """Fraction of rows held out to evaluate the model, below 1; 0 for none.

    They are not trained on. The id alone decides whether a row is held out.
    """
    split_seed: str | None = setting(file_default="")
    """Seed of the split into training and held-out rows; any text."""
    share_metrics: ShareMetrics = setting("nothing", example="quality")
    """Metrics that Bob shares with Alice: `nothing`, or the model's `quality` on held-out rows, in
    whole per cent.

    The ledger charges for them ([what they
    cost](how-to/agreements.md#tell-alice-how-good-the-model-is)).
    """
    metrics_epsilon: Positive | None = setting(example=1.0)
    """With `quality`: share only the accuracy, with noise, at this epsilon.

    Supported by `label-rr`, `add` and `mult`; the others do not charge for the model itself.
    """
    few_labels: FewLabels = setting("refused", example="accepted")
    """Whether Bob's side begins with fewer than 20 training labels of a class: `refused` or
    `accepted`.

    So few labels let Alice's weights point at their rows; his file alone cannot accept that
    ([why](threat_model.md#what-a-side-chooses)).
    """
    rarest_value: PositiveInt | None = setting(example=100)
    """Alice's side begins only if each of her prepared columns has at least this many training rows
    off its commonest value.

    A column that is different in a few rows gives away their labels where she receives her weights
    (`reveal`). Left out: any column.
    """
    family: FamilyName = "binomial"
    l2: NonNegative
    intercept: bool = False
    class_weight: ClassWeight | None = None
    feature_bits: PositiveInt
    residue_bits: PositiveInt
    parties: Parties = setting()
    """With several Alices: the name of each and the fingerprint of her key.

    A section of its own, `[agreement.parties]`, with a line for each, in an order that all sides
    share: `alice-1 = "…"`. The names, 2 to 16 of them, are those of the certificates, whose
    fingerprints `taciturn certs` prints ([certificates](how-to/install.md#certificates)). Left out
    with one Alice.
    """

    # Of a study's models that share one search, in ascending order; ``l2`` has its coordinates.
    penalties: Penalties | None = None
    # SHA-256 of the text that both sides hold in a file, where they do: no setting of that file.
    file_digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None

    @property
    def kind(self) -> Family:
        """The family of the labels."""
        return FAMILIES[self.family]

    @property
    def alices(self) -> int:
        """Number of feature parties."""
        return len(self.parties or {}) or 1

    @property
    def models(self) -> int:
        """Number of models: one per penalty."""
        return len(self.penalties or [self.l2])

    def of_model(self, number: int) -> Self:
        """The agreement of one of the models."""
        if self.penalties is None:
            return self
        return self.model_copy(update={"l2": self.penalties[number], "penalties": None})

    @property
    def rounds(self) -> int:
        """Number of uses of each row: the passes of newton, the epochs of sgd."""
        return self.solver.rounds

    @property
    def sgd(self) -> Sgd:
        """The solver of a training by batches; raises ``ConfigError`` where there are none."""
        if isinstance(self.solver, Sgd):
            return self.solver
        raise ConfigError(
            f"{self.mechanism} trains by batches, and {self.solver.name} has none",
            setting="solver",
            hint=Hint("use {solver}", solver="sgd"),
        )

    def with_rounds(self, rounds: int) -> Agreement:
        """The same agreement with another number of passes or epochs."""
        return self.model_copy(update={"solver": self.solver.with_rounds(rounds)})

    @classmethod
    def named(
        cls, values: Mapping[str, Any], *, syntax: SettingSyntax | None = None
    ) -> dict[str, Any]:
        """The same values under the names of the settings, the solver's among them."""
        return named(collected(values, AGREEMENT_KEYS), AGREEMENT_KEYS, syntax, cls.section)

    @model_validator(mode="before")
    @classmethod
    def _with_solver(cls, values: dict[str, Any]) -> dict[str, Any]:
        chosen = values.get("solver", Sgd.name)
        if isinstance(chosen, Sgd | Newton):
            return values
        kind = SOLVERS.get(chosen) if isinstance(chosen, str) else None
        if kind is None:
            raise ConfigError(
                f"setting solver: no solver is called {chosen!r}",
                setting="solver",
                hint=nearest(str(chosen), SOLVERS),
            )
        rest = {name: value for name, value in values.items() if name not in kind.model_fields}
        solver_values = {name: value for name, value in values.items() if name in kind.model_fields}
        return {**rest, "solver": kind.from_mapping(solver_values)}

    @model_serializer(mode="wrap")
    def _plain(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The fields as a text can hold them: sorted keys would lose the order of the parties."""
        plain: dict[str, Any] = {}
        for name, value in values(self).items():
            plain |= {name: self.solver.name, **value} if name == "solver" else {name: value}
        parties = plain.pop("parties", None)
        for name in ("rarest_value", "file_digest", "penalties", FIELD):
            if plain.get(name) is None:
                plain.pop(name, None)
        # Left out where they are not set: agreements keep the text that they had.
        for name, usual in (("family", "binomial"), ("few_labels", "refused")):
            if plain.get(name) == usual:
                del plain[name]
        # Left out with one Alice, whose agreements have the text that they always had.
        return plain if parties is None else {**plain, "parties": [*map(list, parties.items())]}

    def canonical(self) -> str:
        """One text for one agreement: sorted keys, no blanks."""
        return canonical_json(self.model_dump())

    @classmethod
    def parse(cls, text: str) -> Agreement:
        """Read a canonical text back; raises ConfigError where it is no agreement."""
        try:
            values = json.loads(text, parse_int=_whole_number)
        except (ValueError, RecursionError):
            raise ConfigError("the agreement is not JSON") from None
        if not isinstance(values, dict):
            raise ConfigError("the agreement is not a JSON object")
        return cls.from_mapping(values)


def _whole_number(digits: str) -> int:
    number = int(digits)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError
    return number


# The solver's own settings stand behind its name.
AGREEMENT_KEYS = tuple(
    key
    for name in Agreement.model_fields
    for key in ((name, *Newton.model_fields, *Sgd.model_fields) if name == "solver" else (name,))
)


# Settings whose values follow from another one's, unless they are given: where that one differs,
# these tell nothing more.
_BY_SOLVER = frozenset({"l2", *Newton.model_fields, *Sgd.model_fields})
_FOLLOWS: Mapping[str, frozenset[str]] = {
    "mechanism": _BY_SOLVER | Protection.model_fields.keys() | {"solver", "scheme", "key_bits"},
    "solver": _BY_SOLVER,
    "scheme": frozenset({"key_bits"}),
    # By default they follow from the number of training rows.
    "held_out": frozenset({"l2", "passes", "score_range"}),
    "split_seed": frozenset({"l2", "passes", "score_range"}),
}


def differences(ours: str, theirs: str, here: str = "here", there: str = "there") -> list[str]:
    """Names each key on which two canonical texts differ; of the parties, each place in their list.

    Of settings that follow from another one only that one is named.

    >>> differences('{"a":1,"b-c":2}', '{"a":1,"b-c":3,"c":4}')
    ['b-c: 2 here, 3 there', 'c: absent here, 4 there']
    >>> differences('{"a":{"b":1}}', '{"a":{"b":2}}', "before", "now")
    ['a.b: 1 before, 2 now']
    >>> differences('{"held_out":0.2,"l2":0.1}', '{"held_out":null,"l2":0.2}')
    ['held-out: 0.2 here, none there']
    """
    try:
        left, right = json.loads(ours), json.loads(theirs)
    except (ValueError, RecursionError):
        return ["the peer's settings are not JSON"]
    if not isinstance(left, dict) or not isinstance(right, dict):
        return ["the peer's settings are not a JSON object"]
    missing, left, right = object(), _spread(left), _spread(right)
    apart = [
        key
        for key in sorted(left.keys() | right.keys())
        if left.get(key, missing) != right.get(key, missing)
    ]
    implied = {name for key in apart for name in _FOLLOWS.get(key, ()) if name != key}
    own = f"{FIELD}."
    if "mechanism" in apart:
        implied |= {key for key in apart if key.startswith(own)}
    apart = [key for key in apart if key not in implied]

    def show(value: object) -> str:
        # The peer's text reaches a screen: escaped, and cut.
        if value is missing or value is None:
            return "none" if value is None else "absent"
        return json.dumps(value)[:80]

    named = [
        f"{hyphenated(show(key.removeprefix(own)).strip(chr(34)))}: "
        f"{show(left.get(key, missing))} {here}, "
        f"{show(right.get(key, missing))} {there}"
        for key in apart[:MOST_DIFFERENCES]
    ]
    rest = len(apart) - len(named)
    return [*named, f"and {rest} more"] if rest else named


def _spread(values: dict[str, Any], place: str = "") -> dict[str, Any]:
    """The same as one table, with an entry for each party, as far as the list is one.

    >>> _spread({"a": {"b": 1}, "parties": [["alice-1", "0f"], ["alice-2", "1f"]]})
    {'a.b': 1, 'party 1': 'alice-1 0f', 'party 2': 'alice-2 1f'}
    """
    plain: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            plain |= _spread(value, f"{place}{key}.")
        elif key == "parties" and isinstance(value, list):
            for number, party in enumerate(value, start=1):
                fits = isinstance(party, list) and all(isinstance(part, str) for part in party)
                plain[f"{place}party {number}"] = " ".join(party) if fits else party
        else:
            plain[f"{place}{key}"] = value
    return plain
