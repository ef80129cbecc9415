"""Parties in one process: their files in a folder, and each party in a thread over loop wires."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.engine.callbacks import SILENT, Callbacks, Observer, noop
from taciturn.engine.pair import run_pair, run_star
from taciturn.engine.transcript import Transcript
from taciturn.extensions import OBSERVERS, installed
from taciturn.jobs.base import Job, run_job
from taciturn.jobs.predict.job import PredictJob
from taciturn.jobs.train.dry_run import DryRunJob
from taciturn.jobs.train.job import TrainJob, TrainSide
from taciturn.model.share import ModelShare
from taciturn.model.whole import WholeModel, whole_model
from taciturn.parallel import one_thread
from taciturn.party.config import PartyConfig
from taciturn.party.endpoints import open_endpoint
from taciturn.party.observers import METRICS
from taciturn.protocol.events import Event
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.party import PartyResult
from taciturn.results.serialise import record_of
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import ACCEPTED_EXPOSURE, ACCEPTED_LEAK
from taciturn.transport.certs import make_certificates
from taciturn.transport.channel import Endpoint, Endpoints
from taciturn.transport.tls import show_certificate
from tests.party.wires import Wire
from tests.system import free_port
from tests.waiting import HANG

ROLES = ("alice", "bob")
# newton, the default, where none of sgd's own settings is named.
NEWTON: dict[str, Any] = {"epochs": None, "batch-size": None, "learning-rate": None, "passes": 4}
SGD: dict[str, Any] = {"epochs": 2, "batch-size": 8, "learning-rate": 0.1, "passes": None}

MECHANISMS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "add": {"mechanism": "add", "epsilon": 2.0},
    "mult": {"mechanism": "mult", "epsilon": 2.0, "variant": "mean-one"},
    "sealed": {"mechanism": "sealed", **NEWTON, "passes": 2},
    "mutual": {"mechanism": "mutual", **NEWTON, "passes": 2},
    "label-rr": {"mechanism": "label-rr", "epsilon": 2.0},
    "hybrid": {"mechanism": "hybrid", "alice-columns": 6, "l-rr": 16},
}


# Another distribution writes the files of metrics: the core alone refuses to name one.
WRITES_METRICS = any(entry.name == METRICS for entry in installed(OBSERVERS))


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def section(name: str, values: dict[str, Any]) -> str:
    lines = [f"{key} = {toml(value)}" for key, value in values.items() if value is not None]
    return "\n".join([f"[{name}]", *lines, ""])


@cache
def _breast_cancer() -> tuple[list[str], Any, Any]:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    return [name.replace(" ", "_") for name in data.feature_names], data.data, data.target


def write_tables(folder: Path, *, rows: int = 120, alice: int = 6, bob: int = 3) -> None:
    """The first rows and columns of breast-cancer, each side's in another order."""
    names, values, labels = _breast_cancer()
    ids = {"id": [f"p{number:04d}" for number in range(rows)]}
    columns = dict(zip(names, values[:rows].T, strict=True))
    hers, his = names[:alice], names[alice : alice + bob]
    pl.DataFrame({**ids, **{name: columns[name] for name in hers}}).write_csv(folder / "alice.csv")
    bobs = {**ids, **{name: columns[name] for name in his}, "sick": labels[:rows]}
    pl.DataFrame(bobs).reverse().write_csv(folder / "bob.csv")


def write_wide_tables(folder: Path, rows: int) -> None:
    """Made-up rows, as many as asked for: two columns at Alice, and one at Bob."""
    entropy = KeyedEntropy.from_seed(3)
    values = entropy.uniform((rows, 3))
    ids = [f"p{number}" for number in range(rows)]
    label = (values.sum(axis=1) + entropy.fork("label").uniform((rows,)) > 2).astype(int)
    pl.DataFrame({"id": ids, "a": values[:, 0], "b": values[:, 1]}).write_csv(folder / "alice.csv")
    pl.DataFrame({"id": ids, "c": values[:, 2], "sick": label}).write_csv(folder / "bob.csv")


@cache
def _certificates(names: tuple[str, ...]) -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        make_certificates(Path(folder), list(names))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def write_certificates(folder: Path, *names: str) -> None:
    """Certificates of one authority, which are issued once for each set of names."""
    folder.mkdir(parents=True)
    for name, content in _certificates(names or ROLES).items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)


def write_config(folder: Path, role: str, **changes: dict[str, Any]) -> Path:
    """A party's file; ``changes`` lie over its sections, and None leaves a setting out."""
    peer = "bob" if role == "alice" else "alice"
    way = {"listen": "127.0.0.1:0"} if role == "bob" else {"connect": "127.0.0.1:1"}
    chosen = changes.get("agreement", {})
    whole_tables = (
        chosen.get("mechanism") in ("sealed", "mutual") or chosen.get("base_mechanism") == "sealed"
    )
    batches = {"epochs": 2, "batch-size": 8, "learning-rate": 0.1}
    sections: dict[str, dict[str, Any]] = {
        "agreement": {
            "mechanism": "none",
            # Most of these tables are small.
            "few-labels": "accepted",
            **({"passes": 2} if whole_tables else batches),
        },
        "data": {"file": f"{role}.csv", "id": "id", **({"label": "sick"} if role == "bob" else {})},
        "link": {
            **way,
            "peer": peer,
            "ca": "certs/ca.pem",
            "certificate": f"certs/{role}.pem",
            "key": f"certs/{role}.key",
            "connect-seconds": HANG,
            "answer-seconds": HANG,
        },
        "state": {"folder": f"{role}-state", "checkpoint-iterations": 5, "sync": False},
        "output": {
            "model": f"{role}.model.json",
            "log": f"{role}.log",
            **({"metrics": f"{role}.metrics.json"} if WRITES_METRICS else {}),
            # The page takes longer than these trainings.
            **({"report": ""} if role == "bob" else {}),
        },
        # What these trainings tell is no secret.
        "privacy": {"accept-leak": ACCEPTED_LEAK}
        if role == "bob"
        else {"accept-column-exposure": ACCEPTED_EXPOSURE},
    }
    for name, values in changes.items():
        sections[name] = {**sections.get(name, {}), **values}
    text = f'role = "{role}"\n' + "\n".join(section(*entry) for entry in sections.items())
    path = folder / f"{role}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def set_up(folder: Path, *, state: Any = None, **agreement: Any) -> None:
    """Both parties' files with one agreement, and changes to [state]."""
    for role in ROLES:
        write_config(folder, role, agreement=agreement, state=state or {})


@dataclass
class Ends:
    """How the two sides ended: a result, or what was raised."""

    alice: Any
    bob: Any

    @property
    def records(self) -> tuple[dict[str, Any], dict[str, Any]]:
        for end in (self.alice, self.bob):
            if isinstance(end, BaseException):
                raise end
        return self.alice.to_dict(), self.bob.to_dict()


@dataclass(frozen=True)
class Party:
    """One side with its connection, ready to train."""

    config: PartyConfig
    endpoint: Endpoints
    callbacks: Callbacks = SILENT

    def run(self, *, record: Path | None = None, fresh: bool = False) -> Any:
        """Trains one model, or a study; or resumes."""
        job = TrainJob(record, fresh)
        return run_job(job, self.config, self.callbacks, self.endpoint)

    def dry_run(self) -> Any:
        return run_job(DryRunJob(), self.config, self.callbacks, self.endpoint)

    def prepared(self) -> TrainSide:
        """The side of one training, without a connection."""
        return TrainJob().prepare(self.config)


def in_threads(sides: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Each side in a thread: its result, or what it raised."""
    ends: dict[str, Any] = {}

    def live(name: str) -> None:
        try:
            ends[name] = sides[name]()
        except BaseException as problem:
            ends[name] = problem

    threads = [threading.Thread(target=live, args=(name,)) for name in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert not any(thread.is_alive() for thread in threads)
    return ends


def run_both(
    folder: Path,
    wire: Wire | None = None,
    *,
    act: Callable[[Any], Any] = lambda party: party.run(),
    watch: Mapping[str, Callbacks] | None = None,
    kind: Callable[[PartyConfig, Endpoint, Callbacks], Any] = Party,
) -> Ends:
    wire = wire or Wire()

    def side(role: str) -> Any:
        config = PartyConfig.read(folder / f"{role}.toml")
        endpoint: Endpoint = wire.endpoint(serves=role == "bob")
        return act(kind(config, endpoint, (watch or {}).get(role, Callbacks())))

    return Ends(**in_threads({role: lambda role=role: side(role) for role in ROLES}))  # type: ignore[misc]


def run_jobs(
    folder: Path,
    jobs: Mapping[str, Job[Any]],
    wire: Wire | None = None,
    watch: Mapping[str, Callbacks] | None = None,
) -> Ends:
    """Both parties of a folder, each with its job."""

    def side(config: PartyConfig, endpoint: Endpoint, callbacks: Callbacks) -> Any:
        return partial(run_job, jobs[config.role], config, callbacks, endpoint)

    return run_both(folder, wire, kind=side, act=lambda run: run(), watch=watch)


def record(folder: Path, **options: Any) -> Callable[[Party], Any]:
    """Trains, and records it."""
    return lambda party: party.run(record=folder / f"{party.config.role}.transcript", **options)


def alone(folder: Path, role: str) -> Party:
    """A party that meets nobody."""
    config = PartyConfig.read(folder / f"{role}.toml")
    return Party(config, Wire().endpoint(serves=True), Callbacks())


class Pulled(BaseException):
    """The plug is pulled: nothing on this side catches it."""


def pulled_at(name: str, count: int, kind: type[object] = object) -> dict[str, Callbacks]:
    """Stops a side inside its count-th event of a kind."""
    seen = list[object]()

    def observe(event: Event) -> None:
        if isinstance(event, kind):
            seen.append(event)
            if len(seen) == count:
                raise Pulled

    return {name: Callbacks(observe=observe)}


def weights(folder: Path, role: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return ModelShare.load(folder / f"{role}.model.json").weights


def share_numbers(share: ModelShare) -> list[Any]:
    """What a model file has: weights, and the shares of Alice's weights and of Bob's."""
    return [share.weights.tolist(), list(share.share), list(share.bob_share)]


def result_numbers(end: PartyResult) -> list[Any]:
    """The same of a program's result."""

    def values(share: WeightShare | None) -> list[int]:
        return [] if share is None else share.values.tolist()

    trained = end.trained
    return [trained.weights.tolist(), values(trained.share), values(trained.bob_share)]


def same_numbers(model: list[Any], expected: list[Any]) -> bool:
    """Whether two models of ``share_numbers`` are equal; with shares of Bob's to the last places.

    There, in mutual, the last places depend on the noise of encryptions.
    """
    if not expected[2]:
        return model == expected
    shares = [np.array(one[1] + one[2], dtype=np.int64) for one in (model, expected)]
    # Modulo 2^59, centred, in units of 2^-36 of a whitened weight.
    apart = np.abs((shares[0] - shares[1]) << np.int64(5)) >> np.int64(5)
    return bool(apart.max() < 1 << 10) and model[0] == pytest.approx(expected[0], abs=1e-4)


def model_numbers(folder: Path) -> list[list[Any]]:
    return [share_numbers(ModelShare.load(folder / f"{role}.model.json")) for role in ROLES]


def numbers_in_one_process(folder: Path) -> tuple[list[list[Any]], dict[str, Any]]:
    """The numbers of ``ends_in_one_process``, and Bob's ledger."""
    ends, ledger = ends_in_one_process(folder)
    return [result_numbers(end) for end in ends], ledger


def in_one_process(
    folder: Path, observe: Observer = noop
) -> tuple[list[float], list[float], dict[str, Any]]:
    """The weights of both sides and Bob's ledger, of ``ends_in_one_process``."""
    ends, ledger = ends_in_one_process(folder, observe)
    one, two = (end.trained.weights.tolist() for end in ends)
    return one, two, ledger


def ends_in_one_process(
    folder: Path, observe: Observer = noop
) -> tuple[tuple[PartyResult, PartyResult], dict[str, Any]]:
    """The same training in one thread, fed the entropy that the parties recorded."""
    pair = Company(folder, ("alice",), written=True)
    ends, ledger = pair.ends_in_one_process(observe)
    return (ends["alice"], ends["bob"]), ledger


# --- one Alice or several -------------------------------------------------------------------------

Act = Callable[[PartyConfig, Endpoints, Callbacks], Any]
TWO_ALICES: tuple[str, ...] = ("alice-1", "alice-2")


def role_of(name: str) -> str:
    return "bob" if name == "bob" else "alice"


def training(config: PartyConfig, way: Endpoints, calls: Callbacks, *, fresh: bool = False) -> Any:
    """Trains, and records it beside the party's file."""
    record = config.path(f"{config.role}.transcript")
    return Party(config, way, calls).run(record=record, fresh=fresh)


def _new_rows(config: PartyConfig) -> str:
    return "new.csv" if config.parties else f"{config.role}.new.csv"


def scoring(config: PartyConfig, way: Endpoints, calls: Callbacks) -> Any:
    """Scores the new rows beside the party's file."""
    rows = config.path(_new_rows(config))
    return run_job(PredictJob(config.path(config.output.model), rows), config, calls, way)


def records(ends: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What everybody says at the end; raises what was raised."""
    for end in ends.values():
        if isinstance(end, BaseException):
            raise end
    return {name: end.to_dict() for name, end in ends.items()}


@dataclass
class Company:
    """One Bob and his Alices. Several have a folder each; a single one shares Bob's.

    Args:
        folder: Where their files are.
        names: Of the Alices.
        host: Where Bob listens, as the Alices reach him.
        agreement: What is agreed on beside newton's usual settings.
        sections: Changes to all files.
        written: The files are there.
        certified: The certificates are there.
    """

    folder: Path
    names: tuple[str, ...] = TWO_ALICES
    host: str = "127.0.0.1"
    agreement: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: bool = False
    certified: bool = False

    def __post_init__(self) -> None:
        self.wires: dict[str, Wire] = {}
        if not self.written:
            self.port = free_port()
            if not self.certified:
                write_certificates(self.folder / "certs", *self.all)
            for name in self.all:
                self.write(name)

    @property
    def all(self) -> tuple[str, ...]:
        """Bob first."""
        return ("bob", *self.names)

    def fingerprint(self, name: str, certs: str = "certs") -> str:
        return show_certificate(self.folder / certs / f"{name}.pem").fingerprint

    def place(self, name: str) -> Path:
        return self.folder / name if len(self.names) > 1 else self.folder

    def file(self, name: str, ending: str) -> Path:
        """A party's file, such as its log."""
        return self.place(name) / f"{role_of(name)}.{ending}"

    def write(self, name: str, *, certs: str = "certs", **changes: dict[str, Any]) -> PartyConfig:
        """A party's settings; ``changes`` lie over their sections."""
        role, place, files = role_of(name), self.place(name), self.folder / certs
        place.mkdir(exist_ok=True)
        link: dict[str, Any] = {
            "listen": f"0.0.0.0:{self.port}" if role == "bob" else None,
            "connect": None if role == "bob" else f"{self.host}:{self.port}",
            "ca": str(files / "ca.pem"),
            "certificate": str(files / f"{name}.pem"),
            "key": str(files / f"{name}.key"),
            "keepalive-seconds": 2.0,
        }
        sections: dict[str, dict[str, Any]] = {
            "agreement": {**NEWTON, "mechanism": "sealed", **self.agreement},
            "state": {"checkpoint-iterations": 2},
            "link": link,
        }
        if len(self.names) > 1:
            link["peer"] = None if role == "bob" else "bob"
            sections["agreement.parties"] = {one: self.fingerprint(one) for one in self.names}
        for given in (self.sections, changes):
            for key, values in given.items():
                sections[key] = {**sections.get(key, {}), **values}
        return PartyConfig.read(write_config(place, role, **sections))

    def config(self, name: str) -> PartyConfig:
        return PartyConfig.read(self.file(name, "toml"))

    def prepared(self, name: str) -> TrainSide:
        """A party's side of the training, without a connection."""
        return alone(self.place(name), role_of(name)).prepared()

    # --- tables -----------------------------------------------------------------------------------

    def write_tables(self, rows: int = 120, *, columns: int = 5, differ: int = 0) -> None:
        """Columns of breast-cancer, dealt out in turn; each lacks other ``differ`` rows."""
        titles, values, labels = _breast_cancer()
        ids = [f"p{number:04d}" for number in range(rows)]
        for turn, name in enumerate(self.all):
            # Neighbouring columns predict the label about equally well.
            chosen = list(range(turn, len(titles), len(self.all)))[:columns]
            frame = pl.DataFrame(
                {"id": ids, **{titles[column]: values[:rows, column] for column in chosen}}
            )
            if name == "bob":
                frame = frame.with_columns(sick=pl.Series(labels[:rows])).reverse()
            absent = ids[turn * differ : (turn + 1) * differ]
            frame.filter(~pl.col("id").is_in(absent)).write_csv(self.file(name, "csv"))

    def new_rows(self, name: str) -> Path:
        return self.config(name).path(_new_rows(self.config(name)))

    def write_new(self, name: str, first: int, rows: int) -> Path:
        """New rows of one party, from the ``first`` of all on, in another order."""
        titles, values, _ = _breast_cancer()
        known = pl.read_csv(self.file(name, "csv"), n_rows=1).columns
        numbers = range(first, first + rows)
        ids = [f"p{number:04d}" for number in numbers]
        columns = {t: values[numbers, titles.index(t)] for t in known if t in titles}
        frame, path = pl.DataFrame({"id": ids, **columns}), self.new_rows(name)
        (frame.reverse() if name == "bob" else frame).write_csv(path)
        return path

    # --- in threads -------------------------------------------------------------------------------

    def run(
        self,
        act: Act = training,
        *,
        watch: Mapping[str, Callbacks] | None = None,
        cut: Callable[[int], bool] = lambda number: False,
        real: bool = False,
        **acts: Act,
    ) -> dict[str, Any]:
        """All parties in threads: a result of each, or what was raised.

        Args:
            act: What they do.
            watch: Who is told what happens to some of them.
            cut: Where each wire breaks.
            real: Over gRPC and TLS.
            acts: What some do by name, with _ for -, in place of ``act``.
        """
        wires = self.wires = {name: Wire(cut) for name in self.names}

        def side(name: str) -> Any:
            config, calls = self.config(name), (watch or {}).get(name, Callbacks())
            own = acts.get(name.replace("-", "_"), act)
            if real:
                with open_endpoint(config, calls.announce) as way:
                    return own(config, way, calls)
            if name != "bob":
                return own(config, wires[name].endpoint(serves=False), calls)
            his = {other: wire.endpoint(serves=True) for other, wire in wires.items()}
            return own(config, his if len(his) > 1 else his["alice"], calls)

        return in_threads({name: lambda name=name: side(name) for name in self.all})  # type: ignore[misc]

    # --- results ----------------------------------------------------------------------------------

    def transcript(self, name: str) -> Transcript:
        return Transcript.load(self.file(name, "transcript"))

    def share(self, name: str) -> ModelShare:
        return ModelShare.load(self.file(name, "model.json"))

    def whole(self) -> WholeModel:
        return whole_model(*map(self.share, self.all))

    def weights(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Of all prepared columns, in the order of the parts: Bob's last."""
        return np.concatenate([part.weights for part in self.whole().parts])

    def model_numbers(self) -> dict[str, list[Any]]:
        return {name: share_numbers(self.share(name)) for name in self.all}

    def ends_in_one_process(
        self, observe: Observer = noop
    ) -> tuple[dict[str, PartyResult], dict[str, Any]]:
        """The same training in one thread, with the recorded entropy; and Bob's ledger."""
        parties, entropy = {}, {}
        for name in self.all:
            parties[name] = self.prepared(name).plan
            header = self.transcript(name).header
            entropy[name] = KeyedEntropy(bytes.fromhex(header["coins"][role_of(name)]))
        side = parties["bob"].bob_side(entropy["bob"])
        assert side is not None
        alices = {name: parties[name].program(entropy[name], None) for name in self.names}
        bobs = parties["bob"].program(entropy["bob"], side)
        with one_thread():
            if len(self.names) > 1:
                hers, his = run_star(alices, bobs)
            else:
                end, his = run_pair(alices["alice"], bobs, observe=observe)
                hers = {"alice": end}
        return {"bob": his, **hers}, record_of(side.ledger.statement())

    def require_the_same(self, ends: Mapping[str, dict[str, Any]]) -> None:
        """What one process makes of the same entropy (``same_numbers``); and all was said once."""
        alone, ledger = self.ends_in_one_process()
        for name, model in self.model_numbers().items():
            assert same_numbers(model, result_numbers(alone[name]))
        assert ends["bob"]["ledger"] == ledger
        his = self.transcript("bob")
        assert his.links == len(self.names)
        for place, name in enumerate(self.names):
            assert sorted(self.transcript(name).records) == sorted(his.link(place).records)
