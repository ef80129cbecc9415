"""``Agreement``: the part of the settings that both parties must share.

Its canonical text travels in the handshake, and a difference is named key by key.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from taciturn.errors import ConfigError
from taciturn.files import canonical_json
from taciturn.settings.checked import ClassWeight, NonNegative, Positive, PositiveInt
from taciturn.settings.parties import Parties
from taciturn.settings.schema import (
    Evaluate,
    Protection,
    Schedule,
    Settings,
    Solver,
    TellAlice,
)
from taciturn.settings.setting import Scope, Setting, declared

MOST_DIFFERENCES = 40
# What a simulation sets too, and means the same by. Its number of parties is none of it: an
# agreement has their names.
ALSO_SIMULATED = frozenset(
    name for name, setting in declared(Settings).items() if setting.scope is Scope.AGREEMENT
)
_watched = partial(Setting, scope=Scope.AGREEMENT)


class Agreement(Protection):
    """What both parties must have set alike before anything is sent that costs privacy."""

    # A field without a ``Setting`` is declared in ``Settings``; what may be None there has a value
    # once it is agreed on.
    mechanism: str
    scheme: str
    key_bits: Annotated[int, Field(ge=0)]
    # A pass of newton is an epoch of one batch, which has all rows.
    solver: Solver = "sgd"
    epochs: PositiveInt
    batch_size: PositiveInt
    minimum_batch: PositiveInt = 1
    evaluate: Annotated[
        Evaluate,
        _watched(
            "When Bob evaluates the held-out rows: at the `end`, or also after every `epoch`.",
            detail="Each evaluation gives him Alice's scores of these rows",
        ),
    ] = "end"
    patience: Annotated[
        PositiveInt | None,
        _watched(
            "With `epoch`: stop when the held-out loss has not fallen for this many epochs. When "
            "Bob stops depends on labels: the ledger says infinite.",
            example=3,
        ),
    ] = None
    held_out: Annotated[
        Annotated[float, Field(gt=0, lt=1)] | None,
        _watched(
            "Fraction of the rows on which Bob measures the model, below 1; 0 for none.",
            detail="They are not trained on. An id alone decides whether its row is one",
            file_default=0.2,
        ),
    ] = None
    split_salt: Annotated[
        str | None, _watched("Another text selects other held-out rows.", file_default="")
    ] = None
    tell_alice: Annotated[
        TellAlice,
        _watched(
            "What Bob tells Alice of the model: `nothing`, or its `quality` on held-out rows, in "
            "whole per cent, which the ledger prices.",
            detail="[What it costs](price.md#tell-alice-how-good-the-model-is)",
            example="quality",
        ),
    ] = "nothing"
    tell_epsilon: Annotated[
        Positive | None,
        _watched(
            "With `quality`: the accuracy alone is told, with noise, at this price.",
            detail="Only `label-rr`, `add` and `mult`: elsewhere the model itself is not paid for",
            example=1.0,
        ),
    ] = None
    learning_rate: Positive
    schedule: Schedule
    decay: NonNegative
    l1: NonNegative
    l2: NonNegative
    intercept: bool = False
    class_weight: ClassWeight | None = None
    feature_bits: PositiveInt
    residue_bits: PositiveInt
    parties: Annotated[
        Parties,
        _watched(
            "With several Alices: the name of each, and the fingerprint of her key.",
            detail="A section of its own, `[agreement.parties]`, with a line for each, in an order "
            'that all sides share: `alice-1 = "…"`. The names, 2 to 16 of them, are those of the '
            "certificates, whose fingerprints `taciturn certs` prints "
            "([certificates](how-to/certificates.md)). Left out with one Alice",
        ),
    ] = None

    # SHA-256 of the text that both sides hold in a file, where they do: no setting of that file.
    file_digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None

    @property
    def alices(self) -> int:
        """How many feature parties there are."""
        return len(self.parties or {}) or 1

    @model_serializer(mode="wrap")
    def _plain(self, values: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The fields as a text can hold them: sorted keys would lose the order of the parties."""
        plain: dict[str, Any] = values(self)
        parties, digest = plain.pop("parties", None), plain.pop("file_digest", None)
        if digest is not None:
            plain["file_digest"] = digest
        # Left out with one Alice, whose agreements have the text that they always had.
        return plain if parties is None else {**plain, "parties": [*map(list, parties.items())]}

    def canonical(self) -> str:
        """One text for one agreement: sorted keys, no blanks."""
        return canonical_json(self.model_dump())

    @classmethod
    def parse(cls, text: str) -> Agreement:
        """Read a canonical text back; raises ConfigError where it is no agreement."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            raise ConfigError("the agreement is not JSON") from None
        if not isinstance(values, dict):
            raise ConfigError("the agreement is not a JSON object")
        return cls.of(values)


def differences(ours: str, theirs: str, here: str = "here", there: str = "there") -> list[str]:
    """Names each key on which two canonical texts differ; of the parties, each place in their list.

    >>> differences('{"a":1,"b":2}', '{"a":1,"b":3,"c":4}')
    ['b: 2 here, 3 there', 'c: absent here, 4 there']
    >>> differences('{"a":{"b":1}}', '{"a":{"b":2}}', "before", "now")
    ['a.b: 1 before, 2 now']
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

    def show(value: object) -> str:
        # The peer's text reaches a screen: escaped, and cut.
        return "absent" if value is missing else json.dumps(value)[:80]

    named = [
        f"{show(key).strip(chr(34))}: {show(left.get(key, missing))} {here}, "
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
