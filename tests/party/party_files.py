"""Party files of every job and role, and of every kind of refusal, with what reading them gives.

``python -m tests.party.party_files`` records it anew in ``party_files.json``; a test compares.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from taciturn.errors import TaciturnError
from taciturn.job_registry import installed_sections
from taciturn.party.config import PartyConfig
from taciturn.party.training_inputs import terms_for
from taciturn.party.used_paths import used_paths
from taciturn.setting_syntax import toml_value

RECORDED = Path(__file__).with_suffix(".json")
NAMES = {f"alice-{number}": f"{number:x}" * 64 for number in (1, 2)}
FILE = {
    "bob": {
        "data": {"file": "bob.csv", "id": "id", "label": "sick"},
        "link": {"listen": "127.0.0.1:9443", "peer": "alice"},
    },
    "alice": {
        "data": {"file": "alice.csv", "id": "id"},
        "link": {"connect": "bob.example:9443", "peer": "bob"},
    },
}
SGD = {"epochs": 3, "batch-size": 16, "learning-rate": 0.05}
SEVERAL = {"mechanism": "sealed", "parties": NAMES}
STUDY = {"l2": [0.001, 0.01], "folds": 3}
AGREED_FILE = f"""\
format = 1
id = "{"5e" * 16}"
valid-until = 2099-12-17T09:00:00Z
[agreement]
mechanism = "sealed"
passes = 5
held-out = 0.25
[side.bob]
name = "bob"
fingerprint = "{"b0" * 32}"
[side.alice]
name = "alice"
fingerprint = "{"a1" * 32}"
columns = []
"""

# Name of a file: its role, and what lies over its sections; None leaves a setting or section out.
Sections = Mapping[str, Any]
SOUND: dict[str, tuple[str, Sections]] = {
    "mutual alice": ("alice", {}),
    "mutual bob": ("bob", {"agreement": {"mechanism": "mutual", "reveal-bob": True}}),
    "sealed": ("bob", {"agreement": {"mechanism": "sealed", "passes": 6, "l2": 0.01}}),
    "sealed with noise": (
        "bob",
        {"agreement": {"mechanism": "sealed", "reveal": True, "reveal_epsilon": 2.0}},
    ),
    "none by batches": ("bob", {"agreement": {"mechanism": "none", **SGD}}),
    "early stopping": (
        "bob",
        {"agreement": {"mechanism": "none", "patience": 2, "evaluate": "epoch"}},
    ),
    "additive noise": (
        "alice",
        {
            "agreement": {"mechanism": "add", "epsilon": 1, "share-metrics": "quality"},
            "privacy": {"accept-column-exposure": "my columns can be reconstructed"},
        },
    ),
    "multiplicative noise": (
        "bob",
        {
            "agreement": {"mechanism": "mult", "epsilon": 0.5, "variant": "mean-one", "b2": 8},
            "privacy": {"budget": 3.5, "delta": 1e-7, "budget-total": 9.0},
        },
    ),
    "flipped labels": (
        "bob",
        {
            "agreement": {"mechanism": "label-rr", "epsilon": 1.0, "base-mechanism": "sealed"},
            "privacy": {"flip-set": "second", "accept-flips-key": "1f0c9d3a5b7e2468"},
        },
    ),
    "hidden batches": (
        "bob",
        {
            "agreement": {"mechanism": "hybrid", "alice-columns": 30, "l-rr": 40, **SGD},
            "privacy": {"accept-leak": "my labels will be readable"},
        },
    ),
    "a ridge": ("bob", {"agreement": {"family": "gaussian", "intercept": False}}),
    "counts": (
        "bob",
        {
            "agreement": {"mechanism": "sealed", "family": "poisson", "rows": 455},
            "data": {"exposure": "years", "weights": "claims"},
        },
    ),
    "several at bob": ("bob", {"agreement": SEVERAL, "link": {"peer": None}}),
    "several at alice": ("alice", {"agreement": SEVERAL, "link": {"certificate": "alice-1.pem"}}),
    "study": ("bob", {"agreement": {"mechanism": "sealed"}, "study": STUDY}),
    "study of alice": ("alice", {"study": STUDY, "output": {"models": "all"}}),
    "preparation": (
        "alice",
        {
            "data": {
                "bins": {"age": [25, 35.5], "income": 5},
                "transform": "log",
                "date_format": {"opened": "%d.%m.%Y"},
                "winsorise": "none",
                "na-values": ["", "NA"],
                "separator": "tab",
                "decimal": ",",
                "encoding": "latin-1",
                "type": {"zip": "category"},
                "duplicates": "last",
            }
        },
    ),
    "words of a label": ("bob", {"data": {"positive": ["yes", "ja"], "negative": "no"}}),
    "ids to align": (
        "alice",
        {"data": {"normalise-ids": "trim,case", "min-overlap": 0.25, "aligned": "rows.csv"}},
    ),
    "a database": (
        "alice",
        {"data": {"file": None, "query": "select * from t", "connection": "sqlite:bank.db"}},
    ),
    "a cluster": (
        "bob",
        {
            "compute": {
                "engine": "dask",
                "scheduler": "tls://scheduler:8786",
                **{name: f"cluster/{name}.pem" for name in ("ca", "certificate", "key")},
            }
        },
    ),
    "outputs": (
        "bob",
        {
            "output": {
                "held-out-scores": "scores.csv",
                "false-negative-cost": 5,
                "report": "",
                "log": "log",
            },
            "state": {"key": "/keys/bob.key", "sync": False},
        },
    ),
    "limits of alice": (
        "alice",
        {"privacy": {"scores-per-row": 7, "repetitions-per-row": 20, "trainings-per-row": 3}},
    ),
    "woe": ("alice", {"woe": {"allow": True, "share-names": True, "min_rows": 100}}),
    "serve": ("bob", {"serve": {"address": "127.0.0.1:8081", "tokens": "callers.toml"}}),
    "a file of the agreement": ("bob", {"agreement": {"file": "agreement.toml"}}),
}
REFUSED: dict[str, tuple[str, Sections]] = {
    "an unknown section": ("bob", {"dta": {"file": "x"}}),
    "a setting outside": ("bob", {"epochs": 3}),
    "an unknown setting": ("bob", {"agreement": {"epoch": 3}}),
    "a setting twice": ("bob", {"agreement": {"batch-size": 3, "batch_size": 3}}),
    "a wrong type": ("bob", {"link": {"connect-seconds": "long"}}),
    "a wrong range": ("bob", {"agreement": {"held-out": 1.5}}),
    "a wrong choice": ("bob", {"data": {"impute": "mode"}}),
    "a wrong choice of a column": ("alice", {"data": {"transform": {"age": "lag"}}}),
    "wrong edges": ("alice", {"data": {"bins": {"age": [3, 2]}}}),
    "a missing setting": ("bob", {"state": {"folder": None}}),
    "no label": ("bob", {"data": {"label": None}}),
    "a label at alice": ("alice", {"data": {"label": "sick"}}),
    "bob's setting at alice": ("alice", {"privacy": {"accept-leak": "x"}}),
    "alice's setting at bob": ("bob", {"privacy": {"scores-per-row": 3}}),
    "other words": ("bob", {"privacy": {"accept-leak": "they will not"}}),
    "both addresses": ("bob", {"link": {"connect": "alice:1"}}),
    "no peer": ("alice", {"link": {"peer": None}}),
    "bob connects to several": (
        "bob",
        {"agreement": SEVERAL, "link": {"peer": None, "listen": None, "connect": "a:1"}},
    ),
    "one of several": (
        "bob",
        {"agreement": {"mechanism": "sealed", "parties": {"alice-1": NAMES["alice-1"]}}},
    ),
    "two of one key": (
        "bob",
        {"agreement": {"parties": dict.fromkeys(NAMES, "a" * 64)}, "link": {"peer": None}},
    ),
    "a file and a query": ("alice", {"data": {"query": "select 1", "connection": "env:X"}}),
    "a query without a database": ("alice", {"data": {"file": None, "query": "select 1"}}),
    "a password in a file": ("alice", {"data": {"file": "postgresql://u:p@h/d"}}),
    "a limit of one side in the agreement": ("bob", {"agreement": {"budget": 3.0}}),
    "a seed": ("bob", {"agreement": {"seed": 3}}),
    "a simulation's option": ("bob", {"agreement": {"compare-optimum": True}}),
    "no encryption": ("bob", {"agreement": {"mechanism": "sealed", "scheme": "clear"}}),
    "noise that leaks": (
        "bob",
        {"agreement": {"mechanism": "add", "epsilon": 1.0, "noise": "continuous"}},
    ),
    "a setting that the mechanism lacks": ("bob", {"agreement": {"epsilon": 1.0}}),
    "steps of sgd in newton": ("bob", {"agreement": {"solver": "newton", "epochs": 3}}),
    "passes of newton in sgd": (
        "bob",
        {"agreement": {"mechanism": "none", "solver": "sgd", "passes": 3}},
    ),
    "patience of newton": ("bob", {"agreement": {"solver": "newton", "patience": 3}}),
    "patience without epochs": ("bob", {"agreement": {"mechanism": "none", "patience": 3}}),
    "evaluation of no rows": (
        "bob",
        {"agreement": {"mechanism": "none", "evaluate": "epoch", "held-out": 0}},
    ),
    "quality of no rows": ("bob", {"agreement": {"share-metrics": "quality", "held-out": 0}}),
    "a price of nothing": ("bob", {"agreement": {"metrics-epsilon": 1.0}}),
    "a price that protects nothing": (
        "bob",
        {
            "agreement": {
                "mechanism": "sealed",
                "share-metrics": "quality",
                "metrics-epsilon": 1.0,
            }
        },
    ),
    "columns that must be agreed": ("bob", {"agreement": {"mechanism": "hybrid"}}),
    "scores of no rows": (
        "bob",
        {"agreement": {"held-out": 0}, "output": {"held-out-scores": "x.csv"}},
    ),
    "a threshold and a cost": ("bob", {"output": {"threshold": 0.5, "false-negative-cost": 3}}),
    "a cluster without tls": (
        "bob",
        {"compute": {"engine": "dask", "scheduler": "tcp://scheduler:8786"}},
    ),
    "a cluster of nothing": ("bob", {"compute": {"engine": "dask"}}),
    "a cluster without a key": (
        "bob",
        {"compute": {"engine": "dask", "scheduler": "tls://scheduler:8786", "ca": "ca.pem"}},
    ),
    "cores of a cluster": ("bob", {"compute": {"engine": "dask", "cores": 3}}),
    "a scheduler of no cluster": ("bob", {"compute": {"scheduler": "tcp://localhost:1"}}),
    "a cluster for batches": (
        "bob",
        {
            "agreement": {"mechanism": "none", "solver": "sgd"},
            "compute": {"engine": "dask", "scheduler": "tcp://localhost:8786"},
        },
    ),
    "a study that stops early": (
        "bob",
        {
            "agreement": {"mechanism": "none", "patience": 3, "evaluate": "epoch"},
            "study": STUDY,
        },
    ),
    "a study that tells": (
        "bob",
        {"agreement": {"mechanism": "sealed", "share-metrics": "quality"}, "study": STUDY},
    ),
    "a study of nothing": ("bob", {"study": {}}),
    "a study that judges nothing": (
        "bob",
        {"agreement": {"held-out": 0}, "study": {**STUDY, "folds": None}},
    ),
    "a study that flips again": (
        "bob",
        {
            "agreement": {"mechanism": "label-rr", "epsilon": 1.0},
            "study": {"epsilon": [1.0, 2.0]},
        },
    ),
    "a setting beside the file": ("bob", {"agreement": {"file": "agreement.toml", "passes": 3}}),
    "a study beside the file": ("bob", {"agreement": {"file": "agreement.toml"}, "study": STUDY}),
    "a signature of no file": ("bob", {"agreement": {"signed": True}}),
    "no file of the agreement": ("bob", {"agreement": {"file": "absent.toml"}}),
    "one file for two": ("bob", {"output": {"log": "bob.csv"}}),
    "a null character": ("bob", {"output": {"log": "a\0b"}}),
    "unknown ids": ("bob", {"data": {"normalise-ids": "trim,shout"}}),
    "an unknown solver": ("bob", {"agreement": {"solver": "adam"}}),
    "a wrong address of a service": ("bob", {"serve": {"max-rows-per-request": 0}}),
}
FILES = {**SOUND, **REFUSED}


def needed_sections(name: str) -> set[str]:
    """Sections of other packages that a file has, or that its error lists."""
    listed = name in ("an unknown section", "a setting outside")
    return {section for section in ("woe", "serve") if listed or section in FILES[name][1]}


def installed(name: str) -> bool:
    """Whether every job that a file has a section for is installed."""
    return needed_sections(name) <= {section.name for section, _ in installed_sections()}


def text_of(role: str, changes: Sections) -> str:
    """A party's file with these changes."""
    sections: dict[str, Any] = {
        **FILE[role],
        "agreement": {},
        "state": {"folder": f"{role}-state"},
        "output": {"model": f"{role}.model.json"},
    }
    certs = {"ca": "ca.pem", "certificate": f"{role}.pem", "key": f"{role}.key"}
    sections["link"] = {**sections["link"], **certs}
    outside = {key: value for key, value in changes.items() if not isinstance(value, dict)}
    for name, values in changes.items():
        if name not in outside:
            sections[name] = {**sections.get(name, {}), **values}
    lines = [f"{key} = {toml_value(value)}" for key, value in {"role": role, **outside}.items()]
    for name, values in sections.items():
        lines.append(f"[{name}]")
        lines += [f"{k} = {toml_value(v)}" for k, v in values.items() if v is not None]
    return "\n".join([*lines, ""])


def reading(role: str, changes: Sections) -> str:
    """What reading a party's file gives: a digest of its settings, or the text of its error."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agreement.toml").write_text(AGREED_FILE, encoding="utf-8")
        path = folder / f"{role}.toml"
        path.write_text(text_of(role, changes), encoding="utf-8")
        try:
            given = json.dumps(settings_of(PartyConfig.read(path)), sort_keys=True, default=str)
        except TaciturnError as problem:
            return f"{type(problem).__name__}: {problem}".replace(name, "FOLDER")
        return hashlib.sha256(given.replace(name, "FOLDER").encode()).hexdigest()


def settings_of(config: PartyConfig) -> dict[str, Any]:
    """Everything that follows from a party's file, and the agreement of a table of 1,000 rows."""
    sections = ("data", "link", "state", "output", "privacy", "compute")
    first = config.first
    return {
        **{name: getattr(config, name).model_dump(mode="json") for name in sections},
        **{name: job.model_dump(mode="json") for name, job in config.job_sections.items()},
        "agreed": dict(config.agreed),
        "settings": first.settings().model_dump(mode="json"),
        "agreement": terms_for(first, 20, 1000).agreement.canonical(),
        "study": None if config.study is None else config.study.model_dump(mode="json"),
        "places": [config.syntax.place(name, 1) for name in ("clip", "l2", "listen", "sync")],
        # The key's default is in the home folder, under a name that the path decides.
        "paths": [
            f"{used.place} {used.path} {used.use} {used.setting}"
            for used in used_paths(config)
            if config.folder in used.path.parents
        ],
        "peers": config.peers,
    }


def readings() -> dict[str, str]:
    """What reading each file gives whose sections are installed."""
    return {name: reading(*FILES[name]) for name in FILES if installed(name)}


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(readings(), indent=1) + "\n", encoding="utf-8")
