"""The answers to 600 generated tables are those that were recorded (``generated_tables``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pytest

from tests.data.generated_tables import RECORDED, TABLES, digests

_SAMPLE = range(0, TABLES, 20)


def changed(numbers: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
    """Aspects of which the answer is another one, by table."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    for number in numbers:
        before, now = recorded[str(number)], digests(number)
        if now != before:
            yield (
                number,
                sorted(key for key in {**before, **now} if before.get(key) != now.get(key)),
            )


def test_answers_to_some_generated_tables_are_those_recorded():
    assert dict(changed(_SAMPLE)) == {}


@pytest.mark.slow  # the same on all of them, which takes a minute
def test_answers_to_all_generated_tables_are_those_recorded():
    assert dict(changed(range(TABLES))) == {}
