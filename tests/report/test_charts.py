"""The pictures: well-formed, self-standing, with words for who cannot see them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from taciturn.attacks.registry import ATTACKS
from taciturn.report.charts import attacks_svg, epochs_svg
from taciturn.report.document import AuditReport
from taciturn.report.findings import Curve, OverEpochs, Point
from tests.report.samples import RECORDS, bare, hybrid, leaking, quiet, score

SVG = "{http://www.w3.org/2000/svg}"


def drawings(name: str) -> list[str]:
    report = AuditReport.of(RECORDS[name]())
    found = [attacks_svg(each, "x") for each in (report.canary, report.run) if each]
    return found + ([epochs_svg(report.epochs, "y")] if report.epochs else [])


@pytest.mark.parametrize("name", RECORDS)
def test_each_is_well_formed_named_and_described(name):
    for text in drawings(name):
        root = ElementTree.fromstring(text)  # noqa: S314 - our own
        title, words = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert title is not None
        assert words is not None
        assert title.text
        assert words.text
        assert root.get("aria-labelledby") == f"{title.get('id')} {words.get('id')}"
        assert root.get("role") == "img"


@pytest.mark.parametrize("name", RECORDS)
def test_nothing_is_drawn_outside(name):
    for text in drawings(name):
        root = ElementTree.fromstring(text)  # noqa: S314 - our own
        _, _, width, height = map(float, (root.get("viewBox") or "").split())
        for mark in root.iter(f"{SVG}circle"):
            assert 0 < float(mark.get("cx") or -1) < width
            assert 0 < float(mark.get("cy") or -1) < height
        for mark in root.iter(f"{SVG}text"):
            assert 0 <= float(mark.get("x") or -1) <= width
            assert 0 <= float(mark.get("y") or -1) <= height


def test_an_attack_above_the_controls_is_filled_and_the_others_are_hollow():
    report = AuditReport.of(hybrid())
    assert report.canary is not None
    above, below = attacks_svg(report.canary, "a"), attacks_svg(report.run, "b")
    assert above.count("fill:var(--leak") == 2
    assert below.count("fill:var(--leak") == 0
    assert below.count('<circle cx="') == 2


def test_an_interval_that_leaves_the_scale_is_cut_at_its_end():
    record = bare()
    record["attacks"] = [score("few runs", 0.95, 0.82, 1.07)]
    text = attacks_svg(AuditReport.of(record).run, "x")
    ends = [float(x) for x in re.findall(r"H([\d.]+)M", text)]
    assert ends == [346.0]


def test_no_attack_is_said_in_the_picture():
    text = attacks_svg(AuditReport.of({**bare(), "attacks": []}).run, "x")
    assert "no attack applies" in text


def test_a_ranking_shows_its_auc():
    record = quiet()
    record["attacks"] = [score("norm", 0.9, 0.88, 0.92, auc=0.999, auc_low=0.998, auc_high=1.0)]
    assert "AUC 99.90" in attacks_svg(AuditReport.of(record).run, "x")


def test_one_epoch_stands_in_the_middle():
    one = OverEpochs((Curve("only", (Point(1, 0.5, 0.4, 0.6),)),), None, "")
    assert "translate(446.0 " in epochs_svg(one, "x")


def test_each_curve_has_a_shape_and_a_dash_of_its_own():
    report = AuditReport.of(leaking())
    assert report.epochs is not None
    text = epochs_svg(report.epochs, "x")
    for number in (1, 2, 3):
        assert f"var(--s{number}, " in text
    assert len(set(re.findall(r'stroke-width="2" stroke-dasharray="([^"]*)"', text))) == 3


def test_there_is_a_shape_for_every_attack():
    point = Point(1, 0.8, 0.7, 0.9)
    curves = tuple(Curve(attack.name, (point,)) for attack in ATTACKS)
    drawn = epochs_svg(OverEpochs(curves, 0.6, ""), "y")
    shapes = re.findall(r'<path transform="[^"]*" d="([^"]*)"', drawn)
    assert len(set(shapes)) == len(ATTACKS)
