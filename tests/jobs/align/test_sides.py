"""One side of an alignment against another: over a wire in memory, and as real processes."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.data.ids import Normalisation, RowIds
from taciturn.engine.callbacks import Callbacks
from taciturn.errors import (
    ConfigError,
    ConnectionLost,
    PeerStopped,
    RemoteProtocolError,
    RowOrderError,
)
from taciturn.jobs.align.declaration import ALIGNMENT
from taciturn.jobs.align.job import SCRATCH, AlignJob
from taciturn.jobs.align.messages import AlignmentHello, BlindedIds, TwiceBlinded
from taciturn.jobs.align.pairwise import Alignment
from taciturn.jobs.base import run_job
from taciturn.memmap import Scratch
from taciturn.party.aligned_rows import AlignedRows
from taciturn.party.config import PartyConfig
from taciturn.party.journal import Meta, Past
from taciturn.party.link import Link
from taciturn.party.resume import run_program
from taciturn.party.templates import Trial, template
from taciturn.protocol.events import Aligning, Event
from taciturn.protocol.messages import GroupElements, PublicBytes, Role
from taciturn.protocol.steps import Program, receive, send
from taciturn.setting_syntax import COMMAND_LINE
from taciturn.transport.certs import make_certificates
from taciturn.transport.channel import Endpoint
from tests.expected import all_refused
from tests.modules import module_of
from tests.party.sides import Ends, alone, run_both, run_jobs, write_config
from tests.party.wires import Wire
from tests.test_two_machines import free_port

ROLES: tuple[Role, Role] = ("alice", "bob")


def people(folder: Path, alice: list[str], bob: list[str], **changes: Any) -> Path:
    """Two tables with these ids, and a file for each side."""
    pl.DataFrame({"id": alice, "age": range(len(alice))}).write_csv(folder / "alice.csv")
    labels = [number % 2 for number in range(len(bob))]
    pl.DataFrame({"id": bob, "wage": range(len(bob)), "sick": labels}).write_csv(folder / "bob.csv")
    for role in ROLES:
        write_config(folder, role, **changes)
    return folder


def both(
    folder: Path,
    wire: Wire | None = None,
    normalise_ids: tuple[str, str] = ("none", "none"),
    out: dict[str, Path] | None = None,
    watch: dict[str, Callbacks] | None = None,
    rows: dict[Role, Path] | None = None,
) -> Ends:
    """Both sides, each in a thread."""

    jobs: dict[str, AlignJob] = {
        role: AlignJob(Normalisation.parse(how), (out or {}).get(role), (rows or {}).get(role))
        for role, how in zip(ROLES, normalise_ids, strict=True)
    }
    return run_jobs(folder, jobs, wire, watch)


def lists(folder: Path) -> list[AlignedRows]:
    return [AlignedRows.read(folder / f"{role}.aligned.csv", "id") for role in ROLES]


def test_both_sides_write_the_same_list(tmp_path):
    people(tmp_path, ["cy", "ann", "bea", "eve"], ["eve", "dan", "bea", "cy", "fay"])
    alice, bob = both(tmp_path).records
    hers, his = lists(tmp_path)
    assert hers.own_ids == his.own_ids == RowIds.from_values(["bea", "cy", "eve"])
    assert (alice["ids"], alice["peer_ids"], alice["common"]) == (4, 5, 3)
    assert (bob["ids"], bob["peer_ids"], bob["common"]) == (5, 4, 3)
    assert alice["peer_confirmed"]
    assert bob["peer_confirmed"]
    assert alice["bytes_sent"] == bob["bytes_received"]
    assert alice["match"] == bob["match"] == 0.75


def test_spellings_that_normalise_alike_train_together(tmp_path):
    """The aligned rows of two tables that spell ids differently, from alignment to a dry run."""
    ids = [f"Person-{number}" for number in range(60)]
    people(
        tmp_path, [row_id.upper() for row_id in ids], [row_id.lower() for row_id in ids[10:]][::-1]
    )
    both(tmp_path, normalise_ids=("case", "case")).records  # noqa: B018
    hers, his = lists(tmp_path)
    assert hers.common == his.common
    assert hers.own_ids.series[0].isupper()
    assert his.own_ids == his.common
    for role in ROLES:
        write_config(tmp_path, role, data={"aligned": f"{role}.aligned.csv"})
    sides = [alone(tmp_path, role).prepared() for role in ROLES]
    assert sides[0].tables.train.ids.digest() == sides[1].tables.train.ids.digest()


def test_one_row_of_each_repeated_id_is_aligned_and_trained_on(tmp_path):
    ids = [f"P{number}" for number in range(60)]
    data = {"duplicates": "last"}
    people(tmp_path, [*ids, "p7", "P7", "p8"], [*ids[:40], "P3"], data=data)
    alice, bob = both(tmp_path, normalise_ids=("case", "case")).records
    assert (alice["ids"], bob["ids"], alice["common"]) == (60, 40, 40)
    hers, his = lists(tmp_path)
    assert hers.common == his.common
    assert {"P7", "p8"} < {*hers.own_ids.series}
    for role in ROLES:
        write_config(tmp_path, role, data={**data, "aligned": f"{role}.aligned.csv"})
    sides = [alone(tmp_path, role).prepared() for role in ROLES]
    assert sides[0].tables.train.ids.digest() == sides[1].tables.train.ids.digest()


def test_the_list_goes_where_it_was_asked_to(tmp_path):
    people(tmp_path, ["a", "b"], ["b", "c"])
    write_config(tmp_path, "alice", data={"aligned": "common/rows.csv"})
    (tmp_path / "common").mkdir()
    alice, bob = both(tmp_path).records
    assert (alice["added"], alice["to_add"]) == ([], [])
    assert bob["added"] == ['aligned = "bob.aligned.csv"']
    assert alice["configured"]
    assert bob["configured"]
    assert AlignedRows.read(tmp_path / "common/rows.csv", "id").own_ids == RowIds.from_values(["b"])
    alice, bob = both(tmp_path, out={"alice": tmp_path / "other.parquet"}).records
    assert not alice["configured"]
    assert alice["to_add"] == ['aligned = "other.parquet"']
    assert AlignedRows.read(tmp_path / "other.parquet", "id").own_ids == RowIds.from_values(["b"])


def test_the_list_and_the_normalisation_are_named_in_the_partys_file(tmp_path):
    """As taciturn init wrote it: the commented lines are switched on, and nothing else changes."""
    people(tmp_path, ["Ann", "bea", "cy"], ["ANN", "BEA", "dan"])
    for role in ROLES:
        path, plain = tmp_path / f"{role}.toml", template(role, Trial("none"))
        path.write_text(plain.replace('label = "label"', 'label = "sick"'))
        path.chmod(0o640)
    before = (tmp_path / "alice.toml").read_text()
    alice, bob = both(tmp_path, normalise_ids=("case", "case")).records
    lines = ['aligned = "alice.aligned.csv"', 'normalise-ids = "case"']
    assert alice["added"] == lines
    after = (tmp_path / "alice.toml").read_text()
    changed = [
        new for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new
    ]
    assert [line.split("  #")[0] for line in changed] == lines
    assert (tmp_path / "alice.toml").stat().st_mode & 0o777 == 0o640
    assert bob["configured"]
    # The next time nothing is to be added, and the normalisation is the file's.
    config = PartyConfig.read(tmp_path / "bob.toml")
    assert config.data.aligned == "bob.aligned.csv"
    assert config.normalisation == Normalisation.parse("case")
    again = both(tmp_path, normalise_ids=("case", "case")).records
    assert [record["added"] + record["to_add"] for record in again] == [[], []]


@pytest.mark.parametrize("how", ["link", "inline"])
def test_a_file_that_cannot_be_edited_safely_is_left_alone_and_the_line_is_said(tmp_path, how):
    folder = tmp_path / "files"
    folder.mkdir()
    people(folder, ["a", "b"], ["a", "b"])
    path = folder / "alice.toml"
    text = path.read_text()
    if how == "link":
        path.rename(tmp_path / "alice.toml")
        path.symlink_to(tmp_path / "alice.toml")
    else:
        text = text.replace('[data]\nfile = "alice.csv"\nid = "id"\n', "")
        text = text.replace("\n", '\ndata = {file = "alice.csv", id = "id"}\n', 1)
        path.write_text(text)
    alice, _ = both(folder).records
    assert alice["to_add"] == ['aligned = "alice.aligned.csv"']
    assert not alice["configured"]
    assert path.read_text() == text


def test_new_rows_are_aligned_for_a_prediction_and_any_number_may_match(tmp_path):
    """Their list lies beside them; the table of the settings and the settings are left alone."""
    people(tmp_path, ["a"], ["a"])
    for role, ids in (("alice", ["n1", "n2", "n3", "n4"]), ("bob", ["n4", "n5", "n6"])):
        pl.DataFrame({"id": ids}).write_csv(tmp_path / f"new-{role}.csv")
    rows = {role: tmp_path / f"new-{role}.csv" for role in ROLES}
    alice, bob = both(tmp_path, rows=rows).records
    assert (alice["common"], alice["match"], bob["ids"]) == (1, 1 / 3, 3)
    assert alice["file"] == str(tmp_path / "new-alice.aligned.csv")
    assert (alice["configured"], alice["added"], alice["to_add"]) == (False, [], [])
    assert AlignedRows.read(tmp_path / "new-bob.aligned.csv", "id").own_ids == RowIds.from_values(
        ["n4"]
    )


@pytest.mark.parametrize("name", ["{role}.new.csv", "{role}.csv", "{role}.csv.gz"])
def test_the_list_of_new_rows_never_replaces_the_trainings(tmp_path, name):
    people(tmp_path, ["a", "b"], ["b", "a"])
    both(tmp_path).records  # noqa: B018 - raises where a side failed
    before = [(tmp_path / f"{role}.aligned.csv").read_bytes() for role in ROLES]
    rows = {role: tmp_path / name.format(role=role) for role in ROLES}
    for role in ROLES:
        content = pl.DataFrame({"id": ["a", "n"]}).write_csv().encode()
        rows[role].write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    ends = both(tmp_path, rows=rows)
    if ".new." in name:
        assert ends.records[1]["file"] == str(tmp_path / "bob.new.aligned.csv")
    else:
        all_refused(ConfigError, ends.alice, ends.bob)
    assert [(tmp_path / f"{role}.aligned.csv").read_bytes() for role in ROLES] == before


def test_too_small_a_match_stops_both_sides_until_the_setting_accepts_it(tmp_path):
    people(tmp_path, ["a", "b", "C", "D", "E"], ["a", "c", "d", "e"])
    ends = both(tmp_path)
    accepted = ("25.0%", "0.5", "min_overlap=0.25")
    all_refused(RowOrderError, ends.alice, ends.bob, names=accepted)
    assert not list(tmp_path.glob("*.aligned.csv"))
    # Her table tells her what may be wrong; his does not.
    assert 'normalise_ids="case"' in ends.alice.hint
    assert "case" not in ends.bob.hint
    for role in ROLES:
        write_config(tmp_path, role, data={"min-overlap": 0.25})
    alice, bob = both(tmp_path).records
    assert alice["common"] == 1
    assert alice["spellings"] == [
        {"normalise_ids": "case", "changes": 3, "merges": 0, "mixed": True}
    ]
    assert bob["spellings"] == []


def test_no_common_id_is_an_error_on_both_sides_and_leaves_no_list(tmp_path):
    people(tmp_path, ["a", "b"], ["A", "B"])
    ends = both(tmp_path)
    all_refused(RowOrderError, ends.alice, ends.bob, names=2)
    assert "--normalise-ids" in ends.alice.diagnostics(COMMAND_LINE)
    assert not (tmp_path / "alice.aligned.csv").exists()


@pytest.mark.parametrize("frame", [5, 6, 7, 8])
def test_a_broken_link_ends_both_sides_and_they_can_begin_anew(tmp_path, frame):
    people(tmp_path, ["a", "b", "c"], ["b", "c", "d"])
    ends = both(tmp_path, Wire(lambda number: number == frame))
    assert all(isinstance(end, ConnectionLost) for end in (ends.alice, ends.bob)), ends
    assert not (tmp_path / "alice.aligned.csv").exists()
    both(tmp_path).records  # noqa: B018
    assert len(lists(tmp_path)[0].own_ids) == 2


def hostile(rows: int) -> Program[None]:
    """A Bob who greets well and then sends what are no elements."""
    terms = Normalisation().canonical()
    yield from send(AlignmentHello(1, "bob", terms, rows, PublicBytes(bytes(32))))
    yield from receive(AlignmentHello)
    yield from send(BlindedIds(0, GroupElements(b"\xff" * 32 * rows)))
    yield from receive(BlindedIds)
    yield from receive(TwiceBlinded)


def test_a_peer_that_sends_rubbish_ends_both_sides(tmp_path):
    people(tmp_path, ["a", "b", "c"], ["b"])

    def side(config: PartyConfig, endpoint: Endpoint, callbacks: Callbacks) -> Any:
        if config.role == "alice":
            return partial(run_job, AlignJob(), config, callbacks, endpoint)
        past = Past(Meta({}, b"", b"b" * 16))
        link = Link(endpoint, None, past, purpose=ALIGNMENT, rejoins=False)
        return partial(run_program, "bob", hostile(3), link, past)

    ends = run_both(tmp_path, kind=side, act=lambda begun: begun())
    all_refused(RemoteProtocolError, ends.alice)
    all_refused(PeerStopped, ends.bob)


@pytest.fixture
def elements_in_files(monkeypatch):
    """As with many millions of ids: both sides' elements are on the disk, in many buckets."""
    monkeypatch.setattr(module_of(AlignJob), "Scratch", partial(Scratch, least=1))
    monkeypatch.setattr(module_of(Alignment), "BUCKET_IDS", 4)


def states(folder: Path) -> Iterator[Path]:
    return (folder / f"{role}-state" / SCRATCH for role in ROLES)


@pytest.mark.usefixtures("elements_in_files")
def test_elements_lie_in_files_without_a_name_and_leftovers_are_removed(tmp_path):
    """A side that is killed on the way leaves no file; what another system left is removed."""
    people(tmp_path, some(0, 40), some(20, 60))
    for state in states(tmp_path):
        state.mkdir(parents=True)
        (state / "own").write_bytes(b"of a killed alignment")
    there: list[list[Path]] = []

    def look(event: Event) -> None:
        there.append([*next(states(tmp_path)).iterdir()])

    both(tmp_path, watch={"alice": Callbacks(observe=look)}).records  # noqa: B018
    assert there == [[]]
    assert not any(state.exists() for state in states(tmp_path))
    assert lists(tmp_path)[0].own_ids == RowIds.from_values(sorted(some(20, 40)))


# --- real processes ------------------------------------------------------------------------------


def test_progress_and_the_time_left_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(module_of(AlignJob), "NOTE_SECONDS", 0.0)
    monkeypatch.setattr(module_of(Alignment), "TURN_IDS", 8)
    ids = [f"p{number}" for number in range(40)]
    people(tmp_path, ids, ids)
    seen: list[Event] = []
    said: list[str] = []
    both(tmp_path, watch={"alice": Callbacks(said.append, seen.append)}).records  # noqa: B018
    steps = [event for event in seen if isinstance(event, Aligning)]
    assert [event.done for event in steps] == [16, 32, 48, 64, 80]
    assert len(said) >= len(steps)
    log = (tmp_path / "alice.log").read_text()
    (aligned,) = (line for line in map(json.loads, log.splitlines()) if line["event"] == "aligned")
    assert aligned["rows"] == 40
    # Rows are counted, not named.
    assert "p39" not in log + "".join(said)


def some(first: int, last: int) -> list[str]:
    return [f"person-{number}" for number in range(first, last)]


MANY = os.environ.get("TACITURN_ALIGN_IDS", "10000,100000,300000,1000000")


def write_many(folder: Path, role: str, first: int, count: int) -> None:
    """A table of ids alone, in an order of its own."""
    numbers = pl.int_range(first, first + count, eager=True).shuffle(first)
    ids = pl.DataFrame({"n": numbers}).select(
        id=pl.concat_str(pl.lit("person-"), pl.col("n").cast(pl.String).str.zfill(9))
    )
    ids.write_parquet(folder / f"{role}.parquet")


def watched(process: subprocess.Popen[str]) -> tuple[int, float, str]:
    """A process to its end: its peak of memory in bytes, its processor's seconds, what it wrote."""
    assert process.stdout is not None
    status, peak = Path(f"/proc/{process.pid}/status"), 0
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        # What the system keeps of a process that has ended has the peak of who started it.
        lines = (line.split() for line in status.read_text().splitlines())
        peak = max([peak, *(int(line[1]) << 10 for line in lines if line[0] == "VmHWM:")])
        time.sleep(0.1)
    _, code, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    return peak, used.ru_utime + used.ru_stime, process.stdout.read()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from /proc")
@pytest.mark.parametrize("count", [int(count) for count in MANY.split(",")])
def test_many_ids_on_each_side(tmp_path, count):
    """Two processes on this machine, half of the ids common: what it costs each side is printed."""
    make_certificates(tmp_path / "certs", ["alice", "bob"])
    address = f"127.0.0.1:{free_port()}"
    commands = []
    for role, first, way in (("alice", 0, "connect"), ("bob", count // 2, "listen")):
        write_many(tmp_path, role, first, count)
        link = {way: address, "answer-seconds": 3600.0}
        write_config(tmp_path, role, link=link, data={"file": f"{role}.parquet"})
        commands.append([sys.executable, "-m", "taciturn", "align", f"{role}.toml", "--json"])
    start = partial(subprocess.Popen[str], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    with ExitStack() as held, ThreadPoolExecutor(2) as threads:
        sides = [held.enter_context(start(command)) for command in commands]
        ends = list(threads.map(watched, sides))
    assert [side.returncode for side in sides] == [0, 0]
    for role, (peak, seconds, out) in zip(ROLES, ends, strict=True):
        record = json.loads(out)
        assert record["common"] == count // 2
        print(
            f"\n{role}: {count:,} ids, {record['seconds']:.0f} s, of which "
            f"{record['waiting_seconds']:.0f} s waiting; {1e6 * seconds / count:.0f} µs of a "
            f"processor for an id, {record['bytes_sent'] / count:.1f} bytes sent for an id; "
            f"peak {peak / 2**20:.0f} MiB"
        )
        assert peak < 1.5e9
    one, two = lists(tmp_path)
    assert one.own_ids == two.own_ids
    assert one.own_ids.series.is_sorted()
