"""What several Alices cost: the measurement runs, and waiting for them overlaps."""

from __future__ import annotations

import pytest

from taciturn_paper import consortium


def test_bytes_grow_with_the_number_of_alices(monkeypatch):
    monkeypatch.setattr(consortium, "COLUMNS", 3)
    options = {**consortium.SGD, "scheme": "clear"}
    one, two = (consortium.cost(alices, 64, options, 2) for alices in (1, 2))
    assert 1.5 < two.kib / one.kib < 4
    assert one.bob > 0
    assert one.alice > 0


@pytest.mark.slow  # some seconds
def test_the_table_has_a_line_for_each_number_of_alices(monkeypatch):
    monkeypatch.setattr(consortium, "ROWS", 400)
    monkeypatch.setattr(consortium, "ITERATIONS", 2)
    lines: list[str] = []
    consortium.main((1, 2), 1, lines.append)
    assert len(lines) == 4
    assert lines[-1].startswith("| 2 | ")
