"""An earlier name of an option of weight of evidence."""

from __future__ import annotations

from taciturn.__main__ import USAGE, run
from taciturn.settings import removed
from taciturn.settings.removed import FormerName, Kind

FORMER = FormerName("tell-names", "share-names", ((Kind.OPTION, "woe"),), "it is a switch")


def test_an_old_switch_is_wrong_usage_also_where_it_is_off(monkeypatch, capsys):
    monkeypatch.setattr(removed, "FORMER_NAMES", (FORMER,))
    assert run(["woe", "--no-tell-names"]) == USAGE
    assert "--share-names" in capsys.readouterr().err
