"""Bob and several Alices with certificates and tables of their own: as processes, or in threads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.datasets import load_breast_cancer

from taciturn.deploy import Party, PartyConfig, way_to_peer
from taciturn.deploy.transport import make_certificates, show_certificate
from taciturn.engine import Callbacks, Endpoints, Transcript, run_star
from taciturn.model import ModelShare, WholeModel, whole_model
from taciturn.parallel import one_thread
from taciturn.protocol import PartyResult
from taciturn.results import record_of
from taciturn.rng import KeyedEntropy
from tests.deploy.sides import NEWTON, write_config
from tests.deploy.wires import Wire
from tests.test_two_machines import free_port
from tests.waiting import HANG, wait_until

Act = Callable[[PartyConfig, Endpoints, Callbacks], Any]
COLUMNS = 5


def role_of(name: str) -> str:
    return "bob" if name == "bob" else "alice"


@dataclass
class Company:
    """One Bob and several Alices, each with a folder, on one port.

    Args:
        folder: Where their folders are.
        names: Of the Alices.
        host: Where Bob listens, as the Alices reach him.
        agreement: What is agreed on beside newton's usual settings.
        sections: Changes to all files.
    """

    folder: Path
    names: tuple[str, ...] = ("alice-1", "alice-2")
    host: str = "127.0.0.1"
    agreement: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.port = free_port()
        make_certificates(self.folder / "certs", list(self.all))
        self.pins = {name: self.fingerprint(name) for name in self.names}
        for name in self.all:
            self.write(name)

    @property
    def all(self) -> tuple[str, ...]:
        """Bob first."""
        return ("bob", *self.names)

    def fingerprint(self, name: str, certs: str = "certs") -> str:
        return show_certificate(self.folder / certs / f"{name}.pem").fingerprint

    def place(self, name: str) -> Path:
        return self.folder / name

    def write(self, name: str, *, certs: str = "certs", **changes: dict[str, Any]) -> PartyConfig:
        """A party's file; ``changes`` lie over its sections."""
        role, place = role_of(name), self.place(name)
        place.mkdir(exist_ok=True)
        files = self.folder / certs
        way = {
            "listen": f"0.0.0.0:{self.port}" if role == "bob" else None,
            "connect": None if role == "bob" else f"{self.host}:{self.port}",
            "peer": None if role == "bob" else "bob",
            "ca": str(files / "ca.pem"),
            "certificate": str(files / f"{name}.pem"),
            "key": str(files / f"{name}.key"),
            "dead-seconds": 2.0,
        }
        sections = {
            "agreement": {**NEWTON, "mechanism": "sealed", **self.agreement},
            "agreement.parties": dict(self.pins) if hasattr(self, "pins") else {},
            "state": {"every-iterations": 2},
            "link": way,
        }
        for given in (self.sections, changes):
            for key, values in given.items():
                sections[key] = {**sections.get(key, {}), **values}
        return PartyConfig.read(write_config(place, role, **sections))

    def config(self, name: str) -> PartyConfig:
        return PartyConfig.read(self.place(name) / f"{role_of(name)}.toml")

    def party(self, name: str) -> Party:
        """A party that is not going to meet anybody."""
        return Party(self.config(name), Wire().endpoint(serves=True), Callbacks())

    # --- tables -----------------------------------------------------------------------------------

    def write_tables(self, rows: int = 120, *, columns: int = COLUMNS, differ: int = 0) -> None:
        """Columns of breast-cancer, dealt out in turn; each lacks other ``differ`` rows."""
        data = load_breast_cancer()
        ids = [f"p{number:04d}" for number in range(rows)]
        titles = [name.replace(" ", "_") for name in data.feature_names]
        for turn, name in enumerate(self.all):
            # The columns that matter stand together: deal them out.
            chosen = list(range(turn, len(titles), len(self.all)))[:columns]
            frame = pl.DataFrame(
                {"id": ids, **{titles[column]: data.data[:rows, column] for column in chosen}}
            )
            if name == "bob":
                frame = frame.with_columns(sick=pl.Series(data.target[:rows])).reverse()
            absent = ids[turn * differ : (turn + 1) * differ]
            frame = frame.filter(~pl.col("id").is_in(absent))
            frame.write_csv(self.place(name) / f"{role_of(name)}.csv")

    def write_new(self, name: str, first: int, rows: int) -> Path:
        """New rows of one party, from the ``first`` of all on, in an order of its own."""
        own = pl.read_csv(self.place(name) / f"{role_of(name)}.csv", n_rows=1).columns
        data = load_breast_cancer()
        titles = [column.replace(" ", "_") for column in data.feature_names]
        numbers = range(first, first + rows)
        frame = pl.DataFrame(
            {
                "id": [f"p{number:04d}" for number in numbers],
                **{t: data.data[numbers, titles.index(t)] for t in own if t in titles},
            }
        )
        path = self.place(name) / "new.csv"
        (frame.reverse() if name == "bob" else frame).write_csv(path)
        return path

    # --- in threads -------------------------------------------------------------------------------

    def run(
        self,
        act: Act | None = None,
        *,
        watch: Mapping[str, Callbacks] | None = None,
        **acts: Act,
    ) -> dict[str, Any]:
        """Parties in threads over real connections: a result of each, or what was raised.

        Args:
            act: What they do: they train, and record it, by default.
            watch: Who is told what happens to some of them.
            acts: What some do by name, with _ for -, in place of ``act``.
        """
        ends: dict[str, Any] = {}
        act = act or training()

        def side(name: str) -> None:
            try:
                config, calls = self.config(name), (watch or {}).get(name, Callbacks())
                with way_to_peer(config, calls.announce) as way:
                    ends[name] = acts.get(name.replace("-", "_"), act)(config, way, calls)
            except BaseException as problem:
                ends[name] = problem

        threads = [threading.Thread(target=side, args=(name,)) for name in self.all]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)
        assert not any(thread.is_alive() for thread in threads)
        return ends

    # --- results ----------------------------------------------------------------------------------

    def transcript(self, name: str) -> Transcript:
        return Transcript.load(self.place(name) / "transcript")

    def share(self, name: str) -> ModelShare:
        return ModelShare.load(self.place(name) / f"{role_of(name)}.model.json")

    def whole(self) -> WholeModel:
        return whole_model(*map(self.share, self.all))

    def weights(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Of all prepared columns, in the order of the parts: Bob's last."""
        return np.concatenate([part.weights for part in self.whole().parts])

    def model_numbers(self) -> dict[str, list[Any]]:
        """What the model files have: weights, and shares of the Alices' weights."""
        shares = {name: self.share(name) for name in self.all}
        return {name: [one.weights.tolist(), list(one.share)] for name, one in shares.items()}

    def in_one_process(self) -> tuple[dict[str, list[Any]], dict[str, Any]]:
        """The same of the same training in one thread, with the recorded coins; Bob's ledger."""
        parties, coins = {}, {}
        for name in self.all:
            parties[name] = self.party(name)
            header = self.transcript(name).header
            coins[name] = KeyedEntropy(bytes.fromhex(header["coins"][role_of(name)]))
        side = parties["bob"].bob_side(coins["bob"])
        assert side is not None
        with one_thread():
            alices, bob = run_star(
                {name: parties[name].program(coins[name], None) for name in self.names},
                parties["bob"].program(coins["bob"], side),
            )
        ends = {"bob": bob, **alices}
        numbers = {name: _numbers(ends[name]) for name in self.all}
        return numbers, record_of(side.ledger.statement())

    def assert_one_version(self) -> None:
        """What left a side is what came to the other: nothing was said in two versions."""
        his = self.transcript("bob")
        assert his.links == len(self.names)
        for place, name in enumerate(self.names):
            assert sorted(self.transcript(name).records) == sorted(his.link(place).records)


def _numbers(end: PartyResult) -> list[Any]:
    share = end.trained.share
    return [end.trained.weights.tolist(), [] if share is None else share.values.tolist()]


def training(*, fresh: bool = False) -> Act:
    """Trains, and records it beside the party's file."""

    def act(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
        party = Party.of(config, way, calls, dry_run=False)
        return party.run(record=config.path("transcript"), fresh=fresh)

    return act


def records(ends: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What everybody says at the end; raises what was raised."""
    for end in ends.values():
        if isinstance(end, BaseException):
            raise end
    return {name: end.to_dict() for name, end in ends.items()}


# --- processes ------------------------------------------------------------------------------------


@dataclass
class Side:
    """One party's process; it can be killed and started again."""

    company: Company
    name: str
    prefix: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def folder(self) -> Path:
        return self.company.place(self.name)

    def start(self, command: str, *options: str) -> None:
        words = ["-m", "taciturn", command, f"{role_of(self.name)}.toml", *options]
        with (self.folder / "out").open("w") as out, (self.folder / "err").open("a") as err:
            self.process = subprocess.Popen(
                [*self.prefix, sys.executable, *words], cwd=self.folder, stdout=out, stderr=err
            )

    def train(self) -> None:
        self.start("party", "--record", "transcript", "--json")

    def kill(self) -> None:
        """As kill -9 does."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    @property
    def code(self) -> int | None:
        assert self.process is not None
        return self.process.poll()

    @property
    def record(self) -> dict[str, Any]:
        output: dict[str, Any] = json.loads((self.folder / "out").read_text())
        return output

    def said(self) -> str:
        return (self.folder / "err").read_text()[-2000:]

    def kept(self) -> int:
        """Bytes of its journal."""
        journal = self.folder / f"{role_of(self.name)}-state" / "journal"
        return journal.stat().st_size if journal.exists() else 0


@contextmanager
def processes(
    company: Company, prefixes: Mapping[str, Sequence[str]] | None = None
) -> Iterator[dict[str, Side]]:
    """A terminal for each party; nothing is left running."""
    prefix = {name: tuple((prefixes or {}).get(name, ())) for name in company.all}
    sides = {name: Side(company, name, prefix[name]) for name in company.all}
    try:
        yield sides
    finally:
        for side in sides.values():
            side.kill()


def all_end(sides: Mapping[str, Side]) -> dict[str, dict[str, Any]]:
    """Waits until all have ended well; what they say."""
    wait_until(lambda: all(side.code is not None for side in sides.values()), "they did not end")
    assert {side.code for side in sides.values()} == {0}, [side.said() for side in sides.values()]
    return {name: side.record for name, side in sides.items()}


def all_run(sides: Mapping[str, Side], command: str, *options: str) -> dict[str, dict[str, Any]]:
    """A command on all sides at once, to its end."""
    for side in sides.values():
        side.start(command, *options, "--json")
    return all_end(sides)


# --- hosts ----------------------------------------------------------------------------------------


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass
class StarOfHosts:
    """A network namespace for each party, and a cable from Bob's to each other."""

    spaces: dict[str, str]

    @property
    def prefixes(self) -> dict[str, list[str]]:
        return {name: ["ip", "netns", "exec", space] for name, space in self.spaces.items()}

    def cable(self, name: str, state: str) -> None:
        """Pulls an Alice's cable out ("down"), or puts it back ("up")."""
        _ip("-n", self.spaces[name], "link", "set", "wire", state)


@contextmanager
def star_of_hosts(company: Company) -> Iterator[StarOfHosts]:
    """Makes the hosts, and tells each Alice where Bob is; they are gone at the end."""
    spaces = {name: f"taciturn-{name}-{os.getpid()}" for name in company.all}
    bob = spaces["bob"]
    try:
        for space in spaces.values():
            _ip("netns", "add", space)
            _ip("-n", space, "link", "set", "lo", "up")
        for place, name in enumerate(company.names):
            own, port, net = spaces[name], f"wire{place}", f"10.78.{place}"
            _ip("-n", own, "link", "add", "wire", "type", "veth", "peer", port, "netns", bob)
            for space, device, address in ((own, "wire", 1), (bob, port, 2)):
                _ip("-n", space, "addr", "add", f"{net}.{address}/24", "dev", device)
                _ip("-n", space, "link", "set", device, "up")
            company.write(name, link={"connect": f"{net}.2:{company.port}"})
        yield StarOfHosts(spaces)
    finally:
        for space in spaces.values():
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)
