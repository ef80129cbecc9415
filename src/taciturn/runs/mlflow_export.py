"""Result folders sent to MLflow: the one module that knows its client.

**Guarantee.** A folder that was sent is not sent twice: its run carries the manifest's digest, and
is marked finished only when all of it is there. One that was cut off is completed. Nothing is sent
to anybody but the server that is named: MLflow's own reports of its use are turned off, and
redirections are not followed.

**Assumes.** Whoever can read the server may read what the folder holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from taciturn.errors import ConfigError, PrivacyError, TransportError
from taciturn.extras import explained
from taciturn.faces import Hint, hyphenated
from taciturn.results.export import ExportedRun, ExportResult
from taciturn.results.folder import ResultFolder
from taciturn.results.manifest import MANIFEST
from taciturn.results.parts import parts_of
from taciturn.runs.mlflow_record import MANIFEST_TAG, PART_TAG, MlflowRecord, record_of_part
from taciturn.runs.tracking_uri import TrackingUri

if TYPE_CHECKING:
    from mlflow import MlflowClient

EXPERIMENT = "taciturn"
_PARENT_TAG = "mlflow.parentRunId"
_FINISHED = "FINISHED"
# A request takes so many at most.
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
                "this run is a party's own: its figures may depend on labels, and whoever can read "
                "the server would have them",
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
            "MLflow cannot write there as it is installed",
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
        metrics = [Metric(one.name, one.value, moment, one.step) for one in record.points]
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
    own = {name: value for name, value in first.parameters.items() if name in _shared(folder)}
    tags = {**first.tags, PART_TAG: "all"}
    for name in ("taciturn.mechanism", "taciturn.verdict"):
        tags.pop(name, None)
    return MlflowRecord(folder.name, own, (), tags)


def _shared(folder: ResultFolder) -> set[str]:
    settings = {hyphenated(name) for name in folder.manifest.settings}
    return settings | {"data/name", "data/rows", "data/held-out rows"}


def _milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)
