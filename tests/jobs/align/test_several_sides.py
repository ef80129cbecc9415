"""An alignment of several Alices with Bob, over wires in memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.data.ids import Normalisation, RowIds
from taciturn.errors import AgreementError, PeerStopped, RowOrderError
from taciturn.jobs.align.job import AlignJob
from taciturn.jobs.base import run_job
from taciturn.memmap import LEAST_MAPPED_BYTES
from taciturn.party.aligned_rows import AlignedRows
from taciturn.party.config import PartyConfig
from tests.expected import all_refused
from tests.jobs.align.test_sides import some
from tests.modules import module_of
from tests.party.sides import in_threads, role_of, write_config
from tests.party.wires import Wire

PINS = {"alice-1": "1" * 64, "alice-2": "2" * 64}
People = Mapping[str, list[str]]


def furnish(folder: Path, people: People, pins: Mapping[str, str] = PINS) -> None:
    """A folder for each party, with its table and its file."""
    for name, ids in people.items():
        role, place = role_of(name), folder / name
        place.mkdir(exist_ok=True)
        columns = {
            "id": ids,
            "age": range(len(ids)),
            "sick": [number % 2 for number in range(len(ids))],
        }
        pl.DataFrame(columns).write_csv(place / f"{role}.csv")
        link = {"peer": None if role == "bob" else "bob"}
        write_config(place, role, link=link, **{"agreement.parties": dict(pins)})


def star(folder: Path, people: People, how: Mapping[str, str] | None = None) -> dict[str, Any]:
    """All parties, each in a thread: a record of each, or what was raised."""
    wires = {name: Wire() for name in people if name != "bob"}

    def side(name: str) -> Any:
        config = PartyConfig.read(folder / name / f"{role_of(name)}.toml")
        bobs = {other: wire.endpoint(serves=True) for other, wire in wires.items()}
        way = bobs if name == "bob" else wires[name].endpoint(serves=False)
        job = AlignJob(Normalisation.parse((how or {}).get(name, "none")))
        return run_job(job, config, endpoint=way).to_dict()

    return in_threads({name: partial(side, name) for name in people})


def list_of(folder: Path, name: str) -> AlignedRows:
    return AlignedRows.read(folder / name / f"{role_of(name)}.aligned.csv", "id")


def no_list(folder: Path) -> bool:
    return not list(folder.glob("*/*.aligned.csv"))


def test_all_sides_write_the_same_list_and_know_their_own_counts(tmp_path):
    people = {
        "bob": ["eve", "dan", "bea", "cy", "fay"],
        "alice-1": ["cy", "ann", "bea", "eve"],
        "alice-2": ["dan", "eve", "bea"],
    }
    furnish(tmp_path, people)
    ends = star(tmp_path, people)
    for name in people:
        assert list_of(tmp_path, name).own_ids == RowIds.from_values(["bea", "eve"]), ends
        assert ends[name]["common"] == 2
        assert ends[name]["peer_confirmed"]
        assert ends[name]["configured"]
    assert ends["bob"]["peer"] == "alice-1, alice-2"
    assert ends["bob"]["parties"] == [
        {"name": "alice-1", "ids": 4, "common": 3},
        {"name": "alice-2", "ids": 3, "common": 3},
    ]
    assert (ends["bob"]["peer_ids"], ends["bob"]["match"]) == (3, 2 / 3)
    # An Alice knows of Bob, and not how many the other has.
    assert ends["alice-1"]["parties"] == [{"name": "bob", "ids": 5, "common": 3}]
    assert (ends["alice-1"]["peer_ids"], ends["alice-1"]["match"]) == (5, 2 / 4)
    sent = sum(ends[name]["bytes_sent"] for name in PINS)
    assert sent == ends["bob"]["bytes_received"]


@pytest.mark.parametrize("ids", [["A", "B"], some(7, 17)], ids=["none", "too few"])
def test_an_alice_without_enough_common_ids_is_named_and_nobody_has_a_list(tmp_path, ids):
    people = {"bob": some(0, 9), "alice-1": some(0, 9), "alice-2": ids}
    furnish(tmp_path, people)
    ends = star(tmp_path, people)
    assert isinstance(ends["bob"], RowOrderError | PeerStopped)
    assert "alice-2" in ends["bob"].message
    all_refused(RowOrderError, ends["alice-2"])
    # The other is told who, and nothing of her ids.
    all_refused(PeerStopped, ends["alice-1"], names="alice-2")
    assert no_list(tmp_path)


def test_too_few_for_all_are_accepted_where_bobs_file_says_so(tmp_path):
    people = {"bob": some(0, 10), "alice-1": some(0, 6), "alice-2": some(5, 12)}
    furnish(tmp_path, people)
    named = ("16.7%", "alice-2", "min_overlap=0.166")
    all_refused(RowOrderError, star(tmp_path, people)["bob"], names=named)
    path = tmp_path / "bob" / "bob.toml"
    path.write_text(path.read_text().replace("[data]", "[data]\nmin-overlap = 0.166"))
    ends = star(tmp_path, people)
    assert [ends[name]["common"] for name in people] == [1, 1, 1]


def test_an_alice_whose_file_names_another_key_is_named(tmp_path):
    people = {"bob": some(0, 5), "alice-1": some(0, 5), "alice-2": some(0, 5)}
    furnish(tmp_path, people)
    furnish(tmp_path, {"alice-2": some(0, 5)}, {**PINS, "alice-1": "3" * 64})
    ends = star(tmp_path, people)
    for name in ("bob", "alice-2"):
        assert isinstance(ends[name], AgreementError | PeerStopped)
    assert "alice-2" in ends["bob"].message
    assert "alice-2" in ends["alice-1"].message
    assert no_list(tmp_path)


def test_the_elements_of_all_pairs_may_take_the_memory_of_one(tmp_path):
    furnish(tmp_path, {"bob": ["a"], "alice-1": ["a"]})
    for name, most in (("bob", LEAST_MAPPED_BYTES // 2), ("alice-1", LEAST_MAPPED_BYTES)):
        config = PartyConfig.read(tmp_path / name / f"{role_of(name)}.toml")
        with module_of(AlignJob)._scratch(config) as scratch:
            assert scratch.least == most
