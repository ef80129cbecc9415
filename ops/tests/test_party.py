"""The life of a party: begun, stopped, resumed, run anew, refused; what it writes, and where."""

from __future__ import annotations

import json
import re
import stat
import threading
from pathlib import Path

import pytest

from taciturn.engine.callbacks import Callbacks
from taciturn.engine.transcript import Transcript
from taciturn.party.config import PartyConfig
from taciturn.party.state_store import StateFolderInUse, key_place
from taciturn.protocol.events import Event
from tests.expected import refused
from tests.party.sides import (
    MECHANISMS,
    ROLES,
    Party,
    record,
    run_both,
    set_up,
    weights,
    write_tables,
)
from tests.party.test_party import BATCHES, stopped_midway
from tests.party.wires import Wire
from tests.waiting import HANG

MONITOR = (Path(__file__).resolve().parents[1] / "docs" / "monitor.md").read_text("utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both parties' tables, and files that agree on noise added to the residues."""
    write_tables(tmp_path)
    set_up(tmp_path, **MECHANISMS["add"])
    return tmp_path


def test_one_state_folder_serves_one_process(folder):
    config = PartyConfig.read(folder / "bob.toml")
    started, release = threading.Event(), threading.Event()
    written: list[str] = []

    def hold(event: Event) -> None:
        started.set()
        release.wait(HANG)

    def second() -> None:
        started.wait(HANG)
        party = Party(config, Wire().endpoint(serves=True), Callbacks())
        try:
            with refused(StateFolderInUse):
                party.run()
            written.append((folder / "bob.metrics.prom").read_text())
        finally:
            release.set()

    thread = threading.Thread(target=second)
    thread.start()
    run_both(folder, watch={"bob": Callbacks(observe=hold)}).records  # noqa: B018
    thread.join(HANG)
    # The files that tell how it goes are the first one's, which runs.
    assert "taciturn_exit_code" not in written[0]


def test_logs_and_figures_hold_no_secret(folder):
    run_both(folder, act=record(folder)).records  # noqa: B018
    entropy = [
        Transcript.load(folder / f"{role}.transcript").header["coins"][role] for role in ROLES
    ]
    shown = "".join(
        (folder / name).read_text()
        for name in ("alice.log", "bob.log", "alice.metrics.json", "bob.metrics.json")
    )
    assert '"event"' in shown
    for secret in (*entropy, "p0001", str(weights(folder, "alice")[0])):
        assert secret not in shown
    for role in ROLES:
        figures = json.loads((folder / f"{role}.metrics.json").read_text())
        assert figures["iterations"] == figures["iterations_total"] == 2 * BATCHES
    assert figures["loss_recent"] > 0
    assert figures["bytes_sent"] > 0
    assert figures["waiting_seconds"] >= 0
    assert "loss_recent" not in json.loads((folder / "alice.metrics.json").read_text())


def test_what_is_written_is_for_its_owner(folder):
    """A log that others could read is closed to them."""
    (folder / "bob.log").write_text("of an earlier version\n")
    (folder / "bob.log").chmod(0o644)
    run_both(folder, act=record(folder)).records  # noqa: B018
    # exact: the test's own line
    assert (folder / "bob.log").read_text().startswith("of an earlier version\n{")
    key, _ = key_place(PartyConfig.read(folder / "bob.toml"))
    written = [
        folder / f"bob.{name}" for name in ("model.json", "metrics.json", "log", "transcript")
    ]
    for path in (*written, key, folder / "bob-state" / "journal"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for place in (key.parent, folder / "bob-state"):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_the_page_names_every_figure_and_every_event(folder):
    set_up(folder, **MECHANISMS["add"], evaluate="epoch")
    stopped_midway(folder)
    run_both(folder).records  # noqa: B018
    run_both(folder).records  # noqa: B018
    for role in ROLES:
        figures = json.loads((folder / f"{role}.metrics.json").read_text())
        for key in figures:
            assert f"`{key}`" in MONITOR, key
        for line in (folder / f"{role}.log").read_text().splitlines():
            entry = json.loads(line)
            assert f"`{entry.pop('event')}`" in MONITOR, line
            for key in entry.keys() - {"time", "role"}:
                assert f"`{key}`" in MONITOR, key
    package = Path(__file__).resolve().parents[2] / "src" / "taciturn"
    files = [package / "party" / name for name in ("session.py", "log.py", "model_file.py")]
    # The events of a service are in ops/docs/serve.md.
    jobs = [path for path in package.glob("jobs/**/*.py") if "serve" not in path.parts]
    source = "".join(path.read_text("utf-8") for path in (*files, *jobs))
    events = re.findall(r"\b_?log\(\s*\"(.+?)\"", source)
    assert len(events) > 10
    for event in events:
        assert f"`{event}`" in MONITOR, event
