"""Result folders sent to MLflow: the one module that knows its client.

**Guarantee.** A folder that was sent is not sent twice: its run carries the manifest's digest, and
is marked finished only when all of it is there. One that was cut off is completed. Nothing is sent
to anybody but the server that is named: MLflow's own reports of its use are turned off, and
redirections are not followed.

**Assumes.** Anyone who can read the server may read what the folder holds.

Infinite figures, of which MLflow's stores make other numbers, are tags.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from taciturn.errors import ConfigError, PrivacyError, TransportError
from taciturn.extras import explained
from taciturn.results.figures import Part, parts_of
from taciturn.results.folder import MANIFEST, Manifest, ResultFolder, without_credentials
from taciturn.results.serialise import Result
from taciturn.setting_syntax import Hint, hyphenated
from taciturn_risk.runs.result import ExportedRun, ExportResult

if TYPE_CHECKING:
    from mlflow import MlflowClient

# MLflow's own limits; what is longer is cut, and the artifacts have all of it.
MOST_PARAMETER, MOST_TAG, MOST_KEY = 6000, 5000, 250
_OTHER = re.compile(r"[^a-z0-9/]+")
MANIFEST_TAG, PART_TAG = "taciturn.manifest", "taciturn.part"


@dataclass(frozen=True, slots=True)
class Point:
    """A metric's value at a step."""

    name: str
    value: float
    step: int = 0


@dataclass(frozen=True, slots=True)
class MlflowRecord:
    """One run as MLflow has it."""

    name: str
    parameters: Mapping[str, str]
    points: tuple[Point, ...]
    tags: Mapping[str, str]


def metric_name(words: str) -> str:
    """A figure's name as MLflow allows it.

    >>> metric_name("model/AUC, held-out"), metric_name("leakage/Alice's values that Bob tells")
    ('model/auc_held_out', 'leakage/alice_s_values_that_bob_tells')
    """
    return _OTHER.sub("_", words.lower()).strip("_")[:MOST_KEY]


def record_of_part(run_part: Part, *, curves: bool = True) -> MlflowRecord:
    """MLflow parameters, metrics and tags of a run; with ``curves``, step by step."""
    entry, made = run_part.entry, run_part.manifest
    points = [*_figures(run_part.values)]
    points += _curves(run_part.result) if curves else []
    finite = tuple(point for point in points if math.isfinite(point.value))
    infinite = {
        f"taciturn.{point.name}": str(point.value) for point in points if math.isinf(point.value)
    }
    name = f"{entry.name} {entry.part}".rstrip()
    return MlflowRecord(name, _parameters(run_part), finite, {**_tags(run_part, made), **infinite})


def _parameters(run_part: Part) -> dict[str, str]:
    data = run_part.manifest.data
    facts = {"rows": data.rows, "held-out rows": data.held_out_rows}
    facts |= {f"columns {side}": count for side, count in data.columns.items()}
    known = {_parameter_name(name): value for name, value in run_part.settings.items()}
    known |= {f"data/{name}": value for name, value in {"name": data.name, **facts}.items()}
    return {
        name[:MOST_KEY]: str(value)[:MOST_PARAMETER]
        for name, value in known.items()
        if value is not None
    }


def _parameter_name(setting: str) -> str:
    """The parameter of a setting; a folder of MLflow's cannot hold ``data`` and ``data/name``."""
    return "data/file" if setting == "data" else hyphenated(setting)


def _tags(run_part: Part, made: Manifest) -> dict[str, str]:
    entry = run_part.entry
    digests = {f"digest.{name}": digest for name, digest in made.data.digests.items()}
    tags = {
        "kind": made.kind,
        "version": made.version,
        "command": made.command,
        "mechanism": entry.mechanism,
        "dataset": entry.dataset,
        "verdict": entry.verdict,
        "private": "yes" if made.private else "no",
        "host": f"{made.host.platform}, Python {made.host.python}, {made.host.cores} cores",
        **digests,
    }
    known = {f"taciturn.{name}": value[:MOST_TAG] for name, value in tags.items() if value}
    return {**known, MANIFEST_TAG: made.digest, PART_TAG: entry.part or "whole"}


def _figures(values: Mapping[str, float]) -> Iterator[Point]:
    for name, value in values.items():
        yield Point(metric_name(name), value)


def _curves(result: Result) -> Iterator[Point]:
    for name, curve in result.curves().items():
        for step, value in curve:
            yield Point(metric_name(f"curve/{name}"), value, step)


_USE = "use https://HOST, http://127.0.0.1:5000 or sqlite:///FILE"


@dataclass(frozen=True, slots=True)
class TrackingUri:
    """Address of an MLflow server or store; ``shown`` omits user name and password."""

    uri: str
    remote: bool
    files: bool

    @property
    def shown(self) -> str:
        """The address for a person."""
        return without_credentials(self.uri)

    def __repr__(self) -> str:
        return f"TrackingUri({self.shown})"

    @classmethod
    def parse(cls, text: str, *, allow_http: bool = False) -> TrackingUri:
        """Check an address; ConfigError if runs cannot be sent there, or not safely.

        ``allow_http`` accepts plain http to a machine that is not this one.
        """
        try:
            parts = urlsplit(text)
            host = parts.hostname or ""
        except ValueError:
            raise _unusable(text) from None
        if parts.scheme in ("http", "https"):
            _require_host(text, parts, host, allow_http)
            return cls(text, remote=True, files=False)
        if parts.scheme == "sqlite":
            return cls(text, remote=False, files=False)
        if text and (parts.scheme in ("", "file") or "://" not in text):
            return cls(text, remote=False, files=True)
        raise _unusable(text)


def _require_host(text: str, parts: SplitResult, host: str, allow_http: bool) -> None:
    if not host:
        raise _unusable(text)
    if parts.password or parts.username:
        raise ConfigError(
            "an address with a name or a password in it ends up in the shell's history",
            setting="mlflow",
            hint="set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or "
            "MLFLOW_TRACKING_TOKEN, instead",
        )
    if parts.scheme == "http" and not is_loopback(host) and not allow_http:
        raise ConfigError(
            "plain http would send the runs unencrypted",
            setting="mlflow",
            hint=Hint("use https, or add {allow_http} where the network is your own"),
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its address or as ``localhost``.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("mlflow.example")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unusable(text: str) -> ConfigError:
    return ConfigError(
        f"runs cannot be exported to {without_credentials(text) or 'nowhere'}",
        setting="mlflow",
        hint=_USE,
    )


EXPERIMENT = "taciturn"
_PARENT_TAG = "mlflow.parentRunId"
_FINISHED = "FINISHED"
# Maximum number per request.
_METRICS, _OTHERS = 1000, 100
# MLflow reads them when it is loaded. A server that is not there is said within seconds, not after
# seven tries; what the person has set stays.
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
_USUAL = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
    "MLFLOW_ALLOW_HTTP_REDIRECTS": "false",
}


def export(
    folders: Sequence[ResultFolder],
    target: TrackingUri,
    *,
    experiment: str = EXPERIMENT,
    confirmed: bool = False,
    artifacts: bool = True,
) -> ExportResult:
    """Send result folders to an MLflow server or store; the result says which were there already.

    Each folder becomes a run, with one below it for each of several parts. ``confirmed``: a party's
    own figures, which may depend on labels, may be sent.

    Raises PrivacyError where that is not confirmed, ConfigError where MLflow is not installed or
    cannot write there, and TransportError where the server does not answer, or refuses.
    """
    for folder in folders:
        if folder.manifest.private and not confirmed:
            raise PrivacyError(
                "this run is a party's own: its figures may depend on labels, and anyone who can "
                "read the server would have them",
                where=str(folder.path),
                hint=Hint("if they may, add {yes}"),
            )
    client = _client(target)
    with _reported(target):
        place = _Experiment(client, _experiment_id(client, experiment), target, artifacts)
        exported = tuple(place.send(folder) for folder in folders)
    return ExportResult(target.shown, experiment, exported)


def _client(target: TrackingUri) -> MlflowClient:
    os.environ.update(_QUIET)
    for name, value in _USUAL.items():
        os.environ.setdefault(name, value)
    if target.files:
        # The only store of MLflow's that its small package has; it is refused without this.
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    with explained():
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    try:
        return MlflowClient(tracking_uri=target.uri, registry_uri=target.uri)
    except (MlflowException, ModuleNotFoundError):
        raise ConfigError(
            "the installed MLflow cannot write to this address",
            setting="mlflow",
            hint="for a database of your own install the whole of it: pip install mlflow",
        ) from None


@contextmanager
def _reported(target: TrackingUri) -> Iterator[None]:
    """Turns MLflow's errors into ours, which name the server."""
    from mlflow.exceptions import MlflowException
    from requests.exceptions import RequestException

    try:
        yield
    except (MlflowException, RequestException, OSError) as problem:
        first = (str(problem).strip().splitlines() or ["without a reason"])[0]
        if "unsupported URI" in first or "No module named" in first:
            first = "it needs the whole of MLflow: pip install mlflow"
        raise TransportError(
            f"MLflow refused, or did not answer: {first[:300]}",
            where=target.shown,
            hint="see that the server runs and may be written; what was sent is completed when "
            "the command is run again",
        ) from None


def _experiment_id(client: MlflowClient, name: str) -> str:
    known = client.get_experiment_by_name(name)
    return str(client.create_experiment(name) if known is None else known.experiment_id)


@dataclass(frozen=True, slots=True)
class _Experiment:
    client: MlflowClient
    ident: str
    target: TrackingUri
    artifacts: bool

    def send(self, folder: ResultFolder) -> ExportedRun:
        parts = parts_of(folder)
        first = record_of_part(parts[0])
        # Of several parts the run of the whole has no figures; each part's own run has them.
        alone = len(parts) == 1
        whole = first if alone else _whole(folder, first)
        run_id, complete = self._run(whole, folder)
        if complete:
            return ExportedRun(folder.name, run_id, added=False)
        self._log(run_id, whole, folder)
        for part in () if alone else parts:
            record = record_of_part(part)
            child, there = self._run(record, folder, parent=run_id)
            if not there:
                self._log(child, record, folder)
                self._finish(child, folder)
        if self.artifacts:
            self._send_files(run_id, folder)
        self._finish(run_id, folder)
        return ExportedRun(folder.name, run_id, added=True)

    def _run(
        self, record: MlflowRecord, folder: ResultFolder, parent: str | None = None
    ) -> tuple[str, bool]:
        """The run of a record, made if it is not there; and whether all of it is."""
        tags = record.tags
        same = f"tags.`{MANIFEST_TAG}` = '{tags[MANIFEST_TAG]}'"
        runs: Any = self.client.search_runs([self.ident], same, max_results=1000)
        for run in runs:
            if run.data.tags.get(PART_TAG) == tags[PART_TAG]:
                return str(run.info.run_id), run.info.status == _FINISHED
        below = {} if parent is None else {_PARENT_TAG: parent}
        made = self.client.create_run(
            self.ident,
            start_time=_milliseconds(folder.manifest.started),
            tags={**tags, **below},
            run_name=record.name,
        )
        return str(made.info.run_id), False

    def _log(self, run_id: str, record: MlflowRecord, folder: ResultFolder) -> None:
        from mlflow.entities import Metric, Param

        moment = _milliseconds(folder.manifest.ended)
        metrics = [Metric(point.name, point.value, moment, point.step) for point in record.points]
        params = [Param(name, value) for name, value in record.parameters.items()]
        for first in range(0, len(params), _OTHERS):
            chunk = params[first : first + _OTHERS]
            self.client.log_batch(run_id, params=chunk, synchronous=True)
        for first in range(0, len(metrics), _METRICS):
            points = metrics[first : first + _METRICS]
            self.client.log_batch(run_id, metrics=points, synchronous=True)

    def _send_files(self, run_id: str, folder: ResultFolder) -> None:
        where = str(self.client.get_run(run_id).info.artifact_uri)
        asked, named = urlsplit(where), urlsplit(self.target.shown)
        itself = asked.scheme in ("mlflow-artifacts", "https") and (
            asked.netloc in ("", named.netloc)
        )
        if self.target.remote and not itself:
            # It may name a path on this machine, a store that this machine has keys for, or
            # another host.
            raise ConfigError(
                f"the server wants the files written to {where}, past itself",
                where=self.target.shown,
                hint=Hint(
                    "let it serve artifacts itself, or leave the files out: {artifacts}",
                    artifacts=False,
                ),
            )
        for name in (MANIFEST, *(entry.name for entry in folder.manifest.files)):
            self.client.log_artifact(run_id, str(folder.path / name))

    def _finish(self, run_id: str, folder: ResultFolder) -> None:
        ended = _milliseconds(folder.manifest.ended)
        self.client.set_terminated(run_id, _FINISHED, ended)


def _whole(folder: ResultFolder, first: MlflowRecord) -> MlflowRecord:
    shared = {name: value for name, value in first.parameters.items() if name in _shared(folder)}
    tags = {**first.tags, PART_TAG: "all"}
    for name in ("taciturn.mechanism", "taciturn.verdict"):
        tags.pop(name, None)
    return MlflowRecord(folder.name, shared, (), tags)


def _shared(folder: ResultFolder) -> set[str]:
    settings = {_parameter_name(name) for name in folder.manifest.settings}
    return settings | {"data/name", "data/rows", "data/held-out rows"}


def _milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)
