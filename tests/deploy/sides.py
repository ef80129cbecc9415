"""Two parties' files in a folder, and both parties run in threads over a wire in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.datasets import load_breast_cancer

from taciturn.deploy import ACCEPTED_EXPOSURE, ACCEPTED_LEAK, Party, PartyConfig, Trainer
from taciturn.engine import Callbacks, Endpoint, Observer, Transcript, ignore, run_pair
from taciturn.model import ModelShare
from taciturn.parallel import one_thread
from taciturn.protocol import PartyResult, WeightShare
from taciturn.results import record_of
from taciturn.rng import KeyedEntropy
from taciturn.settings import WHOLE_TABLE_ONLY
from tests.deploy.wires import Wire
from tests.waiting import HANG

# newton, the default, where none of sgd's own settings is named.
NEWTON: dict[str, Any] = {"epochs": None, "batch-size": None, "learning-rate": None, "passes": 4}

MECHANISMS: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "add": {"mechanism": "add", "epsilon": 2.0},
    "mult": {"mechanism": "mult", "epsilon": 2.0, "variant": "mean-one"},
    "sealed": {"mechanism": "sealed", **NEWTON, "passes": 2},
    "mutual": {"mechanism": "mutual", **NEWTON, "passes": 2},
    "label-rr": {"mechanism": "label-rr", "epsilon": 2.0},
    "hybrid": {"mechanism": "hybrid", "alice-columns": 6, "l-rr": 16},
}


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def section(name: str, values: dict[str, Any]) -> str:
    lines = [f"{key} = {toml(value)}" for key, value in values.items() if value is not None]
    return "\n".join([f"[{name}]", *lines, ""])


def write_tables(folder: Path, *, rows: int = 120, alice: int = 6, bob: int = 3) -> None:
    """The first rows and columns of breast-cancer, each side's in an order of its own."""
    data = load_breast_cancer()
    ids = [f"p{number:04d}" for number in range(rows)]
    names = [name.replace(" ", "_") for name in data.feature_names]
    hers = pl.DataFrame({"id": ids, **dict(zip(names[:alice], data.data[:rows].T, strict=False))})
    his = {
        "id": ids,
        **dict(zip(names[alice : alice + bob], data.data[:rows, alice:].T, strict=False)),
    }
    hers.write_csv(folder / "alice.csv")
    pl.DataFrame({**his, "sick": data.target[:rows]}).reverse().write_csv(folder / "bob.csv")


def write_config(folder: Path, role: str, **changes: dict[str, Any]) -> Path:
    """A party's file; ``changes`` lie over its sections, and None leaves a setting out."""
    peer = "bob" if role == "alice" else "alice"
    way = {"listen": "127.0.0.1:0"} if role == "bob" else {"connect": "127.0.0.1:1"}
    chosen = changes.get("agreement", {})
    whole_tables = chosen.get("mechanism") in WHOLE_TABLE_ONLY or chosen.get("over") == "sealed"
    batches = {"epochs": 2, "batch-size": 8, "learning-rate": 0.1}
    sections: dict[str, dict[str, Any]] = {
        "agreement": {"mechanism": "none", **({"passes": 2} if whole_tables else batches)},
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
        "state": {"folder": f"{role}-state", "every-iterations": 5, "sync": False},
        "output": {
            "model": f"{role}.model.json",
            "log": f"{role}.log",
            "metrics": f"{role}.metrics.json",
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


def run_both(
    folder: Path,
    wire: Wire | None = None,
    *,
    act: Callable[[Any], Any] = lambda party: party.run(),
    watch: dict[str, Callbacks] | None = None,
    kind: type[Trainer] = Party,
) -> Ends:
    """Both parties of a folder, each in a thread."""
    wire = wire or Wire()
    ends: dict[str, Any] = {}

    def side(role: str, endpoint: Endpoint) -> None:
        try:
            config = PartyConfig.read(folder / f"{role}.toml")
            ends[role] = act(kind(config, endpoint, (watch or {}).get(role, Callbacks())))
        except BaseException as problem:
            ends[role] = problem

    threads = [
        threading.Thread(target=side, args=(role, wire.endpoint(serves=role == "bob")))
        for role in ("alice", "bob")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert not any(thread.is_alive() for thread in threads)
    return Ends(ends["alice"], ends["bob"])


def weights(folder: Path, role: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return ModelShare.load(folder / f"{role}.model.json").weights


def model_numbers(folder: Path) -> list[list[Any]]:
    """What both model files have: weights, and the shares of Alice's weights and of Bob's."""
    shares = [ModelShare.load(folder / f"{role}.model.json") for role in ("alice", "bob")]
    return [[one.weights.tolist(), list(one.share), list(one.bob_share)] for one in shares]


def numbers_of(ends: tuple[PartyResult, PartyResult]) -> list[list[Any]]:
    """The same of both programs' results."""

    def values(share: WeightShare | None) -> list[int]:
        return [] if share is None else share.values.tolist()

    trained = [end.trained for end in ends]
    return [[one.weights.tolist(), values(one.share), values(one.bob_share)] for one in trained]


def numbers_in_one_process(folder: Path) -> tuple[list[list[Any]], dict[str, Any]]:
    """The same of ``ends_in_one_process``, and Bob's ledger."""
    ends, ledger = ends_in_one_process(folder)
    return numbers_of(ends), ledger


def in_one_process(
    folder: Path, observe: Observer = ignore
) -> tuple[list[float], list[float], dict[str, Any]]:
    """The weights of both sides and Bob's ledger, of ``ends_in_one_process``."""
    ends, ledger = ends_in_one_process(folder, observe)
    one, two = (end.trained.weights.tolist() for end in ends)
    return one, two, ledger


def ends_in_one_process(
    folder: Path, observe: Observer = ignore
) -> tuple[tuple[PartyResult, PartyResult], dict[str, Any]]:
    """The same training, both programs in one thread, fed the coins that the parties recorded."""
    sides = {}
    for role in ("alice", "bob"):
        config = PartyConfig.read(folder / f"{role}.toml")
        party = Party(config, Wire().endpoint(serves=True), Callbacks())
        header = Transcript.load(folder / f"{role}.transcript").header
        sides[role] = party, KeyedEntropy(bytes.fromhex(header["coins"][role]))
    (alice, hers), (bob, his) = sides["alice"], sides["bob"]
    side = bob.bob_side(his)
    assert side is not None
    with one_thread():
        ends = run_pair(alice.program(hers, None), bob.program(his, side), observe=observe)
    return ends, record_of(side.ledger.statement())
