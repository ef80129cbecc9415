"""``Agreement``: the part of the settings that both parties must share.

Its canonical text travels in the handshake, and a difference is named key by key.
"""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field

from taciturn.errors import ConfigError
from taciturn.files import canonical_json
from taciturn.settings.checked import ClassWeight, NonNegative, Positive, PositiveInt
from taciturn.settings.schema import Evaluate, Protection, Schedule

MOST_DIFFERENCES = 40


class Agreement(Protection):
    """What both parties must have set alike before anything is sent that costs privacy."""

    scheme: str
    key_bits: Annotated[int, Field(ge=0)]
    epochs: PositiveInt
    batch_size: PositiveInt
    minimum_batch: PositiveInt = 1
    evaluate: Evaluate = "end"
    patience: PositiveInt | None = None
    held_out: Annotated[float, Field(gt=0, lt=1)] | None = None
    split_salt: str | None = None
    learning_rate: Positive
    schedule: Schedule
    decay: NonNegative
    l1: NonNegative
    l2: NonNegative
    class_weight: ClassWeight | None = None
    feature_bits: PositiveInt
    residue_bits: PositiveInt

    def canonical(self) -> str:
        """One text for one agreement: sorted keys, no blanks."""
        return canonical_json(self.model_dump())

    @classmethod
    def parse(cls, text: str) -> Agreement:
        """Reads a canonical text back.

        Raises:
            ConfigError: It is not an agreement.
        """
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            raise ConfigError("the agreement is not JSON") from None
        if not isinstance(values, dict):
            raise ConfigError("the agreement is not a JSON object")
        return cls.of(values)


def differences(ours: str, theirs: str) -> list[str]:
    """Names each key on which two canonical texts differ.

    >>> differences('{"a":1,"b":2}', '{"a":1,"b":3,"c":4}')
    ['b: 2 here, 3 there', 'c: absent here, 4 there']
    """
    try:
        left, right = json.loads(ours), json.loads(theirs)
    except (ValueError, RecursionError):
        return ["the peer's settings are not JSON"]
    if not isinstance(left, dict) or not isinstance(right, dict):
        return ["the peer's settings are not a JSON object"]
    missing = object()
    apart = [
        key
        for key in sorted(left.keys() | right.keys())
        if left.get(key, missing) != right.get(key, missing)
    ]

    def show(value: object) -> str:
        # The peer's text reaches a screen: escaped, and cut.
        return "absent" if value is missing else json.dumps(value)[:80]

    named = [
        f"{show(key).strip(chr(34))}: {show(left.get(key, missing))} here, "
        f"{show(right.get(key, missing))} there"
        for key in apart[:MOST_DIFFERENCES]
    ]
    rest = len(apart) - len(named)
    return [*named, f"and {rest} more"] if rest else named
