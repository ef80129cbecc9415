"""A name of an earlier version is refused wherever it stood, with what to use instead."""

from __future__ import annotations

from typing import Any

import pytest

import taciturn
from taciturn.__main__ import USAGE, run
from taciturn.errors import ConfigError
from taciturn.estimator import VerticalLogisticRegression
from taciturn.settings import removed
from taciturn.settings.removed import (
    Kind,
)
from tests.expected import refused
from tests.settings.test_former_names import SAMPLES, of_kind, spelled, underscored


@pytest.fixture(autouse=True)
def samples(monkeypatch):
    monkeypatch.setattr(removed, "FORMER_NAMES", SAMPLES)


@pytest.mark.parametrize("usage", ["doctor --merge", "align --tell-names", "train --retrain"])
def test_an_old_option_is_known_only_in_its_place(usage, capsys):
    assert run(usage.split()) == USAGE
    said = capsys.readouterr().err
    assert "removed" not in said
    assert "renamed" not in said


@of_kind(Kind.KEYWORD)
def test_an_old_keyword_is_refused(entry, within):
    functions: list[Any] = [getattr(taciturn, within or "train")]
    functions += [] if within else [VerticalLogisticRegression, taciturn.audit, taciturn.check]
    for function in functions:
        with refused(ConfigError, names=spelled(entry, underscored)) as raised:
            function(**{underscored(entry.old): 7})
        assert raised.value.hint
