"""The runbook's commands run as they are written, in two terminals; its other files parse."""

from __future__ import annotations

import configparser
import csv
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

import taciturn
from taciturn import errors
from taciturn.cli.console import BEAT_SECONDS
from taciturn.data.ids import RowIds
from taciturn.engine.transcript import Transcript
from taciturn.model.share import ModelShare
from taciturn.model.whole import whole_model
from taciturn.party.aligned_rows import AlignedRows
from taciturn.party.config import PartyConfig
from taciturn.party.link import BROKEN
from taciturn.party.templates import Trial, template
from tests.party.sides import in_one_process
from tests.system import free_port as free_port  # others import it from here
from tests.waiting import HANG, wait_until

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "two-machines"
RUNBOOK = (EXAMPLE / "README.md").read_text(encoding="utf-8")
ROLES = ("alice", "bob")


@dataclass
class Terminal:
    """One person's terminal: commands one after the other, each a real process."""

    role: str
    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    said: str = ""
    host: tuple[str, ...] = ()

    def start(self, line: str) -> subprocess.Popen[str]:
        first, *rest = shlex.split(line)
        modules = {name: [sys.executable, "-m", name] for name in ("taciturn", "dask")}
        programs = {**modules, "python": [sys.executable]}
        process = subprocess.Popen(
            [*self.host, *programs[first], *rest],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def leave(self) -> None:
        """Ends what is still running, where a test failed."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def end(self, process: subprocess.Popen[str]) -> int:
        out, _ = process.communicate(timeout=HANG)
        self.said = out
        assert "Traceback" not in out
        # A line that is said on the way is as long as it is where there is no terminal.
        tables = [line for line in out.splitlines() if not line.startswith(f"{self.role}: ")]
        assert max(map(len, tables), default=0) <= 100, out
        return process.returncode


def steps(page: str = RUNBOOK) -> list[tuple[str, dict[str, list[str]]]]:
    """Each chapter's commands by terminal."""
    chapters = []
    for chapter in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"```sh (alice|bob)\n(.*?)```", chapter, flags=re.DOTALL)
        if blocks:
            lines = {
                role: [
                    line for who, text in blocks if who == role for line in text.strip().split("\n")
                ]
                for role in ROLES
            }
            chapters.append((chapter.partition("\n")[0], lines))
    return chapters


def accept_exposure(*paths: Path) -> None:
    """Alices take the comment sign away, as a page tells them."""
    for path in paths:
        text = path.read_text()
        assert text.count("# accept-column-exposure") == 1
        path.write_text(text.replace("# accept-column-exposure", "accept-column-exposure"))


def both(terminals: list[Terminal], lines: dict[str, list[str]]) -> list[tuple[int, str]]:
    """A chapter whose commands run side by side; each side's exit code and last words."""
    running = []
    for number in range(max(len(commands) for commands in lines.values())):
        running = [
            (terminal, terminal.start(lines[terminal.role][number]))
            for terminal in terminals
            if number < len(lines[terminal.role])
        ]
        ended = [(terminal.end(process), terminal.said) for terminal, process in running]
    return ended


def still_waiting(alice: Terminal, process: subprocess.Popen[str]) -> subprocess.Popen[str] | None:
    """Her process, where she was not told of Bob's stop and waits for him to come back."""
    log = alice.folder / "alice.log"
    wait_until(lambda: process.poll() is not None or BROKEN in log.read_text())
    if process.poll() is None:
        return process
    assert alice.end(process) == errors.PeerStopped.exit_code, alice.said
    return None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the example on a port of its own; nothing else is changed."""
    folder = tmp_path / "two-machines"
    shutil.copytree(EXAMPLE, folder)
    port = str(free_port())
    for role in ROLES:
        path = folder / f"{role}.toml"
        text = path.read_text()
        assert "127.0.0.1:9443" in text
        path.write_text(text.replace("127.0.0.1:9443", f"127.0.0.1:{port}"))
    return folder


@pytest.fixture
def terminals(folder: Path) -> Iterator[list[Terminal]]:
    opened = [Terminal(role, folder) for role in ROLES]
    yield opened
    for terminal in opened:
        terminal.leave()


@pytest.mark.slow  # half a minute: every command of the runbook, in two terminals
def test_the_runbook_runs_as_it_is_written(folder, terminals):
    prepare, align, dry_run, train, go_on, anew, paid, score = [lines for _, lines in steps()]

    for code, said in both(terminals, prepare):
        assert code == 0, said
    assert {path.name for path in (folder / "blank").iterdir()} == {"alice.toml", "bob.toml"}

    tables = [RowIds.from_values(pl.read_csv(folder / f"{role}.csv")["id"]) for role in ROLES]
    for code, said in both(terminals, align):
        assert code == 0, said
        assert {"455", "512"} <= {*re.findall(r"\d+", said)}, said
    lists = [AlignedRows.read(folder / f"{role}.aligned.csv", "id") for role in ROLES]
    common = set(tables[0].series) & set(tables[1].series)
    assert lists[0].own_ids == lists[1].own_ids == RowIds.from_values(sorted(common))

    for code, said in both(terminals, dry_run):
        assert code == 0, said
    assert not (folder / "bob-state").exists()

    alice, bob = terminals
    hers, his = alice.start(train["alice"][0]), bob.start(train["bob"][0])
    wait_until(lambda: "held_out_loss" in (folder / "bob.log").read_text())
    his.send_signal(signal.SIGTERM)
    assert bob.end(his) == 130, bob.said
    assert not (folder / "bob.model.json").exists()
    waits = still_waiting(alice, hers)
    if waits is None:
        ended = both(terminals, go_on)
    else:
        ended = [(bob.end(bob.start(go_on["bob"][0])), bob.said), (alice.end(waits), alice.said)]
    for code, said in ended:
        assert code == 0, said
    # exact: a line of the log, which programs read
    assert '"event": "session resumed"' in (folder / "bob.log").read_text()
    first = shares(folder)
    assert first[0].session == first[1].session
    # To the last bit what there would have been without the stop; how good that is, noise decides.
    hers_alone, his_alone, ledger = in_one_process(folder)
    assert [share.weights.tolist() for share in first] == [hers_alone, his_alone]
    assert first[1].ledger == ledger
    assert 0 <= first[1].metrics["held_out"]["auc"] <= 1
    assert first[1].ledger["label_epsilon_total"] == 5.0
    assert len(first[1].metrics["curve"]) >= 1
    one, two = (Transcript.load(folder / f"{role}.transcript") for role in ROLES)
    assert sorted(one.records) == sorted(two.records)
    # Stopped and resumed as it was, Alice's recording is audited, and Bob's labels judge.
    files = folder / "alice.transcript", folder / "alice.toml"
    audited = taciturn.audit_session(*files, truth=folder / "bob.toml", canary=False)
    assert audited.recording.session == first[0].session
    assert audited.findings is not None
    assert audited.judgement is not None
    assert audited.judgement.ledger is not None
    assert audited.judgement.ledger.label_epsilon_total == 5.0
    assert {score.name for score in audited.findings.attacks} >= {"likelihood", "sign"}

    for code, said in both(terminals, anew):
        assert code == 0, said
    second = shares(folder)
    assert second[0].session == second[1].session != first[0].session

    ((code, said),) = both(terminals, paid)
    assert code == 0, said
    assert re.search(r"alice .* 2 .* epsilon 10 ", said), said

    for code, said in both(terminals, score):
        assert code == 0, said
    with (folder / "scores.csv").open(newline="") as stream:
        scores = {line["id"]: float(line["score"]) for line in csv.DictReader(stream)}
    hers, his = common_rows(folder)
    exact = whole_model(*second).scores(hers, his)
    assert sorted(scores) == hers["id"].to_list()
    assert len(scores) == 10
    assert [scores[identifier] for identifier in sorted(scores)] == pytest.approx(
        exact.tolist(), abs=2.0**-12 + 2.0**-20
    )


def common_rows(folder: Path) -> list[pl.DataFrame]:
    """Each side's columns of the new people whom both have, by id."""
    hers, his = (pl.read_csv(folder / f"new-{role}.csv").sort("id") for role in ROLES)
    return [hers.join(his, on="id", how="semi"), his.join(hers, on="id", how="semi")]


TUTORIAL = (ROOT / "docs/tutorials/operator.md").read_text(encoding="utf-8")


@pytest.mark.slow  # the runbook, which is run always, takes the same steps
def test_the_operators_tutorial_runs_as_it_is_written(tmp_path):
    """Chapter by chapter: what one person types, the script, then both terminals side by side."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    terminals = [Terminal(role, tmp_path) for role in ROLES]
    _, bob = terminals
    port = str(free_port())
    together = dict(steps(TUTORIAL))
    assert len(together) == 3
    try:
        for chapter in re.split(r"^## ", TUTORIAL, flags=re.MULTILINE)[1:]:
            for line in re.findall(r"^\$ (.*)$", chapter, flags=re.MULTILINE):
                assert bob.end(bob.start(line.replace(":9443", f":{port}"))) == 0, bob.said
            for code in re.findall(r"```python\n(.*?)```", chapter, flags=re.DOTALL):
                (tmp_path / "script.py").write_text(code)
                assert bob.end(bob.start("python script.py")) == 0, bob.said
            lines = together.get(chapter.partition("\n")[0])
            for ended, said in both(terminals, lines) if lines else ():
                assert ended == 0, said
    finally:
        for terminal in terminals:
            terminal.leave()
    assert pl.read_csv(tmp_path / "trial/scores.csv").height == 100
    hers, his = (ModelShare.load(tmp_path / f"trial/{role}.model.json") for role in ROLES)
    assert hers.session == his.session


def shares(folder: Path) -> list[ModelShare]:
    return [ModelShare.load(folder / f"{role}.model.json") for role in ROLES]


def test_the_chapters_are_the_ones_that_are_run():
    assert [title.partition(".")[0] for title, _ in steps()] == ["1", *"3456789"]


def test_the_readme_shows_commands_of_the_runbook():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(taciturn .*?)```", readme, flags=re.DOTALL)
    run = {line for _, lines in steps() for commands in lines.values() for line in commands}
    run |= {line.partition(" --record")[0] for line in run}
    for line in block.strip().split("\n"):
        assert line.partition("#")[0].strip() in run


@pytest.mark.parametrize("role", ROLES)
def test_the_ready_files_are_what_init_writes_but_for_what_the_runbook_says(role):
    ready = PartyConfig.read(EXAMPLE / f"{role}.toml")
    assert ready.role == role
    written = template(ready.role, Trial("add")).splitlines()
    changed = [
        re.split(r" = ", line)[0]
        for line in (EXAMPLE / f"{role}.toml").read_text().splitlines()
        if line not in written
    ]
    way = "connect" if role == "alice" else "listen"
    settings = ["epochs", "batch-size", "learning-rate", "evaluate"]
    consent = ["accept-column-exposure"] if role == "alice" else []
    assert changed == [*settings, "aligned", way, "checkpoint-iterations", *consent]


def test_both_ready_files_agree():
    one, two = (PartyConfig.read(EXAMPLE / f"{role}.toml") for role in ROLES)
    assert one.agreed == two.agreed


# --- what cannot be run here ---------------------------------------------------------------------

UNIT = EXAMPLE / "taciturn@.service"


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(
        strict=False, interpolation=None, comment_prefixes=("#",), delimiters=("=",)
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT, encoding="utf-8")
    return parser


def exit_codes() -> dict[int, str]:
    kinds = [errors.TaciturnError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return {kind.exit_code: kind.__name__ for kind in kinds}


def test_the_unit_goes_on_after_what_may_pass_and_only_then():
    service = unit()["Service"]
    assert service["Restart"] == "on-failure"
    assert service["KillSignal"] == "SIGTERM"
    assert service["SuccessExitStatus"] == "130"
    lasting = {int(code) for code in service["RestartPreventExitStatus"].split()}
    passing = {1, 34, 40, 41, 43, 45, 74}
    assert lasting == {2, *exit_codes()} - passing


def test_the_unit_ends_a_party_that_stands_and_none_that_waits():
    service = unit()["Service"]
    # What the party says must be heard, and its account may use such a socket.
    assert service["NotifyAccess"] == "main"
    assert "AF_UNIX" in service["RestrictAddressFamilies"]
    hours, _, rest = service["WatchdogSec"].partition("h")
    assert not rest
    config = PartyConfig.read(EXAMPLE / "bob.toml")
    waits = config.link.connect_seconds + config.link.answer_seconds + BEAT_SECONDS
    assert 3600 * int(hours) > 2 * waits


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    """The program and its account are not there: these two are put in, nothing else."""
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze here: the unit was only parsed")
    text = UNIT.read_text()
    assert "/opt/taciturn/bin/taciturn" in text
    copy = tmp_path / UNIT.name.replace("@", "@bob")
    copy.write_text(text.replace("/opt/taciturn/bin/taciturn", sys.executable))
    done = subprocess.run(
        [verify, "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    if done.returncode and copy.name not in done.stderr:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr.strip()[:100]}")
    assert done.returncode == 0, done.stderr
    assert copy.name not in done.stderr, done.stderr
