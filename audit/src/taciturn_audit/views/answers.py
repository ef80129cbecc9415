"""Answers of each Alice to Bob, before he sums them.

His program decrypts what each of several Alices sends, and continues with the sum. Here his keys
note what they decrypt, so that every number is at hand that he had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import EncryptedAnswer, Scheme, SecretKey
from taciturn.engine.transcript import Transcript
from taciturn.protocol.codec import decode
from taciturn.protocol.messages import (
    Hello,
    MaskedScores,
    Message,
    PartialScores,
    SealedScores,
)
from taciturn.protocol.terms import Terms


class NotingScheme:
    """A scheme whose secret keys note what they decrypt; all else is the real scheme's work."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self.numbers: dict[bytes, IntArray] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the real scheme has
        return getattr(self._scheme, name)

    @property
    def as_scheme(self) -> Scheme:
        """This object, typed as a ``Scheme``."""
        return cast(Scheme, self)

    def generate(self, *sizes: Any) -> SecretKey:  # noqa: ANN401 - as the real scheme's
        """A key that notes."""
        return cast(SecretKey, _NotingKey(self._scheme.generate(*sizes), self.numbers))

    def read_secret(self, *sizes: Any) -> SecretKey:  # noqa: ANN401 - as the real scheme's
        """A key that notes."""
        return cast(SecretKey, _NotingKey(self._scheme.read_secret(*sizes), self.numbers))


class _NotingKey:
    def __init__(self, key: SecretKey, numbers: dict[bytes, IntArray]) -> None:
        self._key, self._numbers = key, numbers

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the real key has
        return getattr(self._key, name)

    def decrypt_rows(self, answer: EncryptedAnswer, *place: Any) -> IntArray:  # noqa: ANN401
        numbers = self._key.decrypt_rows(answer, *place)
        self._numbers[answer.data] = numbers
        return numbers


def scores_answered(
    link: Transcript, terms: Terms, numbers: Mapping[bytes, IntArray]
) -> dict[int, IntArray]:
    """The numbers in which one Alice told her part of the scores, by iteration or pass.

    ``link`` is the session with her; ``numbers`` has what was decrypted from each answer.
    """
    parts = defaultdict[int, list[IntArray]](list)
    for frame in link.frames("alice"):
        message = decode(frame)
        # A greeting after the first scores opens the scoring of rows: the training is over.
        if parts and isinstance(message, Hello):
            break
        for iteration, scores in _of_message(message, terms, numbers):
            parts[iteration].append(scores)
    return {iteration: np.concatenate(blocks) for iteration, blocks in parts.items()}


def _of_message(
    message: Message, terms: Terms, numbers: Mapping[bytes, IntArray]
) -> Iterator[tuple[int, IntArray]]:
    if isinstance(message, MaskedScores):
        yield message.iteration, np.asarray(message.scores)
    elif isinstance(message, PartialScores):
        grid = terms.direction_grid if terms.whole_table else terms.score_grid
        yield message.iteration, grid.nearest(message.scores).astype(np.int64)
    elif isinstance(message, SealedScores):
        yield message.iteration, numbers[message.answer.data]
