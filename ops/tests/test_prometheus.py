"""The file for Prometheus: what its own parser reads of it, on both sides, at any end."""

from __future__ import annotations

import json
import re
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from taciturn.errors import ConfigError, OutputError, PeerStopped
from taciturn.party.telemetry import LinkSeen, MetricsPublisher, Standing
from taciturn.results.parties import CurvePoint, LinkChanged, Setup
from taciturn_ops.prometheus import METRICS, MetricsFiles, exposition
from tests.modules import module_of
from tests.party.sides import run_both, set_up, write_tables
from tests.party.wires import Wire
from tests.report import samples
from tests.system import promtool_path
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "examples" / "two-machines" / "alerts.yml"
PAGE = (ROOT / "ops" / "docs" / "monitor.md").read_text(encoding="utf-8")
FIGURES = replace(
    samples.FIGURES,
    iterations_total=12,
    curve=(CurvePoint(1, 0.7, 0.8, 0.6), CurvePoint(2, 0.6)),
    remaining_seconds=27.0,
    bytes_sent=1000,
    links=2,
)


def setup(role: str = "bob", peer: str = "alice") -> Setup:
    return Setup(replace(samples.IDENTITY, role=role, peer=peer), "newton")


def values(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """The samples of a file by name, as Prometheus reads them."""
    read: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            read.setdefault(sample.name, []).append((sample.labels, sample.value))
    return read


def one(text: str, name: str) -> float:
    ((_, value),) = values(text)[f"taciturn_{name}"]
    return value


def test_prometheus_reads_every_figure():
    links = {"alice": LinkSeen("connected", 3)}
    text = exposition(Standing(setup(), 100.0, 109.5, FIGURES, links, 105.0, exit_code=40))
    read = values(text)
    assert set(read) == set(METRICS)
    side = {"role": "bob", "peer": "alice"}
    assert read["taciturn_sent_bytes_total"] == [(side, 1000)]
    assert one(text, "progress_ratio") == 0.25
    assert one(text, "reconnections_total") == 2
    assert one(text, "link_up") == 1
    assert one(text, "exit_code") == 40
    assert one(text, "running") == 0
    assert one(text, "written_timestamp_seconds") == 109.5
    assert one(text, "held_out_auc") == 0.6
    assert one(text, "train_loss") == 0.6
    kinds = {family.name: family for family in text_string_to_metric_families(text)}
    for metric in METRICS.values():
        family = kinds[metric.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind, metric.meaning)


def test_at_alice_there_is_no_loss_whatever_she_is_given():
    text = exposition(Standing(setup("alice", "bob"), 0.0, 1.0, FIGURES))
    assert not {metric.name for metric in METRICS.values() if metric.bob} & set(values(text))
    assert "loss" not in text
    assert "auc" not in text


@settings(max_examples=30)
@given(st.text(), st.text(), st.floats(allow_nan=False))
def test_any_name_of_a_peer_and_any_loss_arrive_as_they_are(peer, link, loss):
    figures = replace(FIGURES, loss_recent=loss)
    snapshot = Standing(setup(peer=peer), 0.0, 1.0, figures, links={link: LinkSeen()})
    read = values(exposition(snapshot))
    assert read["taciturn_running"] == [({"role": "bob", "peer": peer}, 1)]
    assert read["taciturn_link_up"] == [({"role": "bob", "peer": link}, 0)]
    assert one(exposition(snapshot), "loss_recent") == loss


# What a killed process leaves of a file that it was writing, and a file of somebody else's.
KILLED, NOT_OURS = "bob.metrics.prom.k1ll3d_x.new", "bob.metrics.prom.2026.new"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both parties' files after a training whose wire broke once."""
    folder = tmp_path_factory.mktemp("trained")
    write_tables(folder)
    set_up(folder)
    for name in (KILLED, NOT_OURS):
        (folder / name).touch()
    assert run_both(folder, Wire(cut=lambda number: number == 20)).records
    return folder


def prom(folder: Path, role: str) -> str:
    return (folder / f"{role}.metrics.prom").read_text(encoding="utf-8")


@pytest.mark.parametrize(("role", "peer"), [("alice", "bob"), ("bob", "alice")])
def test_a_training_leaves_the_file_beside_its_metrics(trained, role, peer):
    text = prom(trained, role)
    figures: dict[str, Any] = json.loads((trained / f"{role}.metrics.json").read_text())
    assert stat.S_IMODE((trained / f"{role}.metrics.prom").stat().st_mode) == 0o600
    assert one(text, "iterations_done") == figures["iterations"] == figures["iterations_total"]
    assert one(text, "sent_bytes_total") == figures["bytes_sent"]
    assert one(text, "reconnections_total") == 1
    assert one(text, "exit_code") == 0
    assert one(text, "running") == 0
    assert one(text, "checkpoint_timestamp_seconds") <= one(text, "written_timestamp_seconds")
    assert values(text)["taciturn_link_up"] == [({"role": role, "peer": peer}, 0)]
    assert ("taciturn_train_loss" in values(text)) == (role == "bob")
    assert values(text)["taciturn_info"][0][0]["mechanism"] == "none"


def test_what_a_killed_process_left_unfinished_is_removed(trained):
    assert not (trained / KILLED).exists()
    assert (trained / NOT_OURS).exists()


def test_a_training_that_fails_says_with_what(tmp_path):
    write_tables(tmp_path, rows=60)
    set_up(tmp_path)
    file = tmp_path / "alice.toml"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(line for line in lines if "accept-column-exposure" not in line))
    ends = run_both(tmp_path)
    assert isinstance(ends.alice, ConfigError)
    assert one(prom(tmp_path, "alice"), "exit_code") == ConfigError.exit_code
    assert one(prom(tmp_path, "alice"), "running") == 0
    assert one(prom(tmp_path, "bob"), "exit_code") in (0, PeerStopped.exit_code)


def test_the_file_is_written_while_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that an old file is one of a process that is gone; a link that breaks is in the next."""
    monkeypatch.setattr(module_of(MetricsPublisher), "EVERY_SECONDS", 0.01)
    file = tmp_path / "bob.metrics.prom"
    board = MetricsPublisher([MetricsFiles(tmp_path / "bob.metrics.json", file)])
    board.begin(setup())

    def text() -> str:
        return file.read_text(encoding="utf-8")

    with board.running():
        first = one(text(), "written_timestamp_seconds")
        assert one(text(), "running") == 1
        wait_until(lambda: one(text(), "written_timestamp_seconds") > first)
        board.hear(LinkChanged("alice", "connected"))
        wait_until(lambda: one(text(), "link_up") == 1 if "link_up" in text() else False)
        board.hear(LinkChanged("alice", "broken"))
        wait_until(lambda: one(text(), "link_up") == 0)
        board.require_written()
        # A folder of its name: no file can take its place.
        with board._writing:
            file.unlink()
            file.mkdir()
        with pytest.raises(OutputError):
            wait_until(lambda: board.require_written())
        file.rmdir()
    assert one(text(), "exit_code") == 0


NAME = re.compile(r"\btaciturn_[a-z_]+\b")


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    listed: list[dict[str, Any]] = group["rules"]
    return listed


def test_rules_and_page_name_metrics_that_there_are():
    assert len(rules()) >= 6
    for rule in rules():
        names = set(NAME.findall(rule["expr"]))
        assert names, rule["alert"]
        assert names <= set(METRICS), rule["alert"]
        assert {"summary", "description"} <= rule["annotations"].keys()
        assert f"`{rule['alert']}`" in PAGE, rule["alert"]
    assert set(NAME.findall(PAGE)) == set(METRICS)


def series(name: str, values: str) -> dict[str, str]:
    return {"series": f'taciturn_{name}{{role="bob",peer="alice",instance="i"}}', "values": values}


# What happens, over two hours in steps of a minute, and which alerts stand at the end of them.
STORIES: dict[str, tuple[list[dict[str, str]], set[str]]] = {
    "all is well": (
        [
            series("running", "1x120"),
            series("written_timestamp_seconds", "0+60x120"),
            series("started_timestamp_seconds", "0x120"),
            series("link_up", "1x120"),
            series("reconnections_total", "0x120"),
            series("iterations_done", "0+3x120"),
            series("waiting_seconds_total", "0+30x120"),
            series("checkpoint_timestamp_seconds", "0+60x120"),
        ],
        set(),
    ),
    "killed": (
        [series("running", "1x120"), series("written_timestamp_seconds", "0+60x60 3600x60")],
        {"TaciturnGone"},
    ),
    "done, long ago": (
        [
            series("running", "0x120"),
            series("written_timestamp_seconds", "0x120"),
            series("exit_code", "0x120"),
            series("link_up", "0x120"),
            series("iterations_done", "12x120"),
            series("started_timestamp_seconds", "0x120"),
        ],
        set(),
    ),
    "failed": ([series("running", "0x120"), series("exit_code", "43x120")], {"TaciturnFailed"}),
    "stopped by a person": ([series("exit_code", "130x120")], set()),
    "the link is down": (
        [series("running", "1x120"), series("link_up", "1x60 0x60")],
        {"TaciturnLinkDown"},
    ),
    "the link is unsteady": ([series("reconnections_total", "0+1x120")], {"TaciturnUnsteadyLink"}),
    "stuck": (
        [
            series("running", "1x120"),
            series("started_timestamp_seconds", "0x120"),
            series("iterations_done", "7x120"),
            series("waiting_seconds_total", "0+60x120"),
            series("checkpoint_timestamp_seconds", "0x120"),
        ],
        {"TaciturnNoProgress", "TaciturnWaiting", "TaciturnOldCheckpoint"},
    ),
}


@pytest.mark.slow  # asks a program that few machines have
@pytest.mark.parametrize("story", STORIES)
def test_prometheus_raises_the_alerts_that_a_story_calls_for(tmp_path, story):
    tool, (inputs, snapshot) = promtool_path(), STORIES[story]
    names = [rule["alert"] for rule in rules()]
    assert snapshot <= set(names)
    expected = [
        {"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'}
        | {"eval_time": "119m", "exp_samples": [{"labels": "{}", "value": int(name in snapshot)}]}
        for name in names
    ]
    written = tmp_path / "story.yml"
    test = {"interval": "1m", "input_series": inputs, "promql_expr_test": expected}
    written.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": [test]}))
    checked = subprocess.run(
        [tool, "test", "rules", str(written)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
