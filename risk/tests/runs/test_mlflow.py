"""Runs exported to MLflow: to a store on this disk always, and to a real server of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from risk.tests.runs.folders import RESULTS, place, place_all

from taciturn.__main__ import run
from taciturn.errors import ConfigError, PrivacyError
from taciturn.numerics.label_metrics import class_metrics
from taciturn.results.figures import parts_of
from taciturn.results.folder import MANIFEST, RESULT, ResultFolder
from taciturn_risk.runs.mlflow_export import TrackingUri, export, metric_name, record_of_part
from tests.expected import refused
from tests.report.samples import TRAINING
from tests.repository.test_schema import problems
from tests.system import mlflow_python
from tests.test_two_machines import free_port
from tests.waiting import wait_until

# Before anything loads it: it would report its use.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return place_all(tmp_path_factory.mktemp("all") / "runs")


def read(folder: Path, *names: str) -> list[ResultFolder]:
    return [ResultFolder.read(folder / name) for name in names]


# --- what it is told --------------------------------------------------------------------------


def test_every_figure_has_a_name_of_its_own_that_mlflow_allows(folder):
    parts = [part for run in read(folder, *RESULTS) for part in parts_of(run)]
    figures = {name for part in parts for name in part.values}
    names = {metric_name(name) for name in figures}
    assert len(names) == len(figures)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_/") for name in names)


def test_an_audit_gives_its_attacks_curves_ledger_and_settings(folder):
    (part,) = parts_of(ResultFolder.read(folder / "audit"))
    record = record_of_part(part)
    values = {(point.name, point.step): point.value for point in record.points}
    assert values["model/auc_held_out", 0] == class_metrics(TRAINING.metrics.test).auc
    assert values["attack/exact_solve/shuffled/accuracy", 0] == 1.0
    assert values["curve/best_attack_on_shuffled_labels", 10] == 1.0
    assert record.parameters["mechanism"] == "none"
    assert record.parameters["data/name"] == "breast-cancer"
    # MLflow's stores make another number of infinity.
    assert ("ledger/label_epsilon_total", 0) not in values
    assert record.tags["taciturn.ledger/label_epsilon_total"] == "inf"
    assert record.tags["taciturn.manifest"] == part.manifest.digest


def test_alices_run_tells_nothing_of_a_label(folder):
    (part,) = parts_of(ResultFolder.read(folder / "alice"))
    names = {point.name.partition("/")[0] for point in record_of_part(part).points}
    assert names == {"cost"}


# --- where to ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "remote"),
    [
        ("https://mlflow.example/x", True),
        ("http://127.0.0.1:5000", True),
        ("http://localhost:5000", True),
        ("http://[::1]:5000", True),
        ("sqlite:///m.db", False),
        ("mlruns", False),
        ("file:///tmp/mlruns", False),
    ],
)
def test_addresses_that_are_accepted(text, remote):
    assert TrackingUri.parse(text).remote is remote


@pytest.mark.parametrize(
    "text",
    [
        "http://mlflow.example",
        "http://127.0.0.1.example",
        "https://me:hunter2@mlflow.example",
        "ftp://mlflow.example",
        "https://",
        "http://[::1",
        "",
    ],
)
def test_addresses_that_are_refused(text):
    with refused(ConfigError) as raised:
        TrackingUri.parse(text)
    assert "hunter2" not in str(raised.value)
    assert raised.value.hint


def test_plain_http_is_accepted_where_it_is_said():
    assert TrackingUri.parse("http://mlflow.example", allow_http=True).remote


def test_a_partys_run_is_sent_only_where_somebody_says_so(folder, tmp_path):
    store = TrackingUri.parse(str(tmp_path / "store"))
    with refused(PrivacyError):
        export(read(folder, "train", "bob"), store)
    # Nothing was sent: not the other run either.
    assert not (tmp_path / "store").exists()


# --- a store on this disk ---------------------------------------------------------------------


@pytest.fixture
def client(tmp_path: Path) -> Any:
    from mlflow import MlflowClient

    return lambda: MlflowClient(tracking_uri=str(tmp_path / "store"))


def test_an_export_is_there_once_with_all_that_the_folder_holds(folder, tmp_path, client):
    store = TrackingUri.parse(str(tmp_path / "store"))
    runs = read(folder, "audit", "bob")
    first = export(runs, store, experiment="credit", confirmed=True)
    again = export(runs, store, experiment="credit", confirmed=True)
    assert [one.added for one in first.exported] == [True, True]
    assert [one.added for one in again.exported] == [False, False]
    assert [one.run_id for one in again.exported] == [one.run_id for one in first.exported]
    stored = client()
    experiment = stored.get_experiment_by_name("credit")
    assert len(stored.search_runs([experiment.experiment_id])) == 2
    bob = stored.get_run(first.exported[1].run_id)
    assert bob.info.status == "FINISHED"
    assert bob.data.metrics["model/auc_held_out"] == 0.93
    assert bob.data.tags["taciturn.private"] == "yes"
    curve = stored.get_metric_history(bob.info.run_id, "curve/held_out_auc")
    assert [(point.step, point.value) for point in curve] == [(1, 0.51), (2, 0.52), (4, 0.54)]
    files = [file.path for file in stored.list_artifacts(bob.info.run_id)]
    assert files == [MANIFEST, RESULT]


def test_a_run_on_a_file_of_ones_own_is_sent_to_a_folder(tmp_path, client, capsys):
    """Its setting ``data`` and the fact ``data/name`` are two files in a folder of MLflow's."""
    place(tmp_path / "runs", "train", settings={"data": "loans.csv", "mechanism": "none"})
    line = ["runs", "export", "train", "--folder", str(tmp_path / "runs")]
    assert run([*line, "--mlflow", str(tmp_path / "store")]) == 0
    assert "MLFLOW_ALLOW_FILE_STORE" in capsys.readouterr().out
    stored = client()
    ident = stored.get_experiment_by_name("taciturn").experiment_id
    (one,) = stored.search_runs([ident])
    assert one.data.params["data/file"] == "loans.csv"
    assert one.data.params["data/name"] == "breast-cancer"


def test_several_parts_are_runs_below_one(folder, tmp_path, client):
    store = TrackingUri.parse(str(tmp_path / "store"))
    (sent,) = export(read(folder, "compare"), store).exported
    stored = client()
    ident = stored.get_experiment_by_name("taciturn").experiment_id
    below = {
        run.data.tags["taciturn.part"]: run.data
        for run in stored.search_runs([ident])
        if run.data.tags.get("mlflow.parentRunId") == sent.run_id
    }
    assert set(below) == {"sealed", "add:5"}
    assert below["sealed"].params["mechanism"] == "sealed"
    assert below["add:5"].metrics["ledger/label_epsilon_total"] == 5.0
    assert stored.get_run(sent.run_id).data.metrics == {}


def test_an_export_that_was_cut_off_is_completed(folder, tmp_path, client, monkeypatch):
    from mlflow import MlflowClient

    store = TrackingUri.parse(str(tmp_path / "store"))
    whole = MlflowClient.log_artifact

    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(MlflowClient, "log_artifact", stop)
    with pytest.raises(KeyboardInterrupt):
        export(read(folder, "train"), store)
    monkeypatch.setattr(MlflowClient, "log_artifact", whole)
    (sent,) = export(read(folder, "train"), store).exported
    assert sent.added
    stored = client()
    ident = stored.get_experiment_by_name("taciturn").experiment_id
    (one,) = stored.search_runs([ident])
    assert one.info.status == "FINISHED"
    assert len(stored.list_artifacts(one.info.run_id)) == 2


# --- the command ------------------------------------------------------------------------------


def test_the_command_prints_one_object(folder, tmp_path, capfd):
    line = ["runs", "export", "train", "--folder", str(folder), "--mlflow", str(tmp_path / "s")]
    for added in (True, False):
        assert run([*line, "--json"]) == 0
        out, err = capfd.readouterr()
        record = json.loads(out)
        assert problems(record, "runs-export") == []
        assert [one["added"] for one in record["exported"]] == [added]
        assert err == ""


def test_the_command_asks_for_consent_in_its_own_options(folder, tmp_path, capsys):
    line = ["runs", "export", "bob", "--folder", str(folder), "--mlflow", str(tmp_path / "s")]
    assert run(line) == PrivacyError.exit_code
    assert "--yes" in capsys.readouterr().err
    line = ["runs", "export", "train", "--folder", str(folder), "--mlflow", "http://a.b"]
    assert run(line) == ConfigError.exit_code
    assert "--allow-http" in capsys.readouterr().err


def test_a_server_that_is_not_there_is_named(folder, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    uri = f"http://127.0.0.1:{free_port()}"
    assert run(["runs", "export", "train", "--folder", str(folder), "--mlflow", uri]) == 40
    assert uri in capsys.readouterr().err


# --- a server of its own ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real tracking server on loopback, in processes of its own."""
    python, folder, port = mlflow_python(), tmp_path_factory.mktemp("server"), free_port()
    line = f"-m mlflow server --host 127.0.0.1 --port {port} --workers 1"
    places = ["--backend-store-uri", f"sqlite:///{folder}/m.db"]
    places += ["--artifacts-destination", str(folder / "artifacts")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(python), *line.split(), *places],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            return bool(asked(f"{address}/health") == b"OK")
        except OSError:
            return False

    try:
        wait_until(answers, "the server never answered")
        yield address
    finally:
        # The session that was started above: the server and its workers.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def asked(url: str, body: object = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - a server of this test
        return bytes(answer.read())


def rest(server: str, call: str, body: object = None, **query: str) -> Any:
    words = f"?{urllib.parse.urlencode(query)}" if query else ""
    return json.loads(asked(f"{server}/api/2.0/mlflow/{call}{words}", body))


@pytest.mark.slow  # a server takes many seconds to start; a store on the disk is tried always
def test_a_real_server_has_the_runs_by_its_own_interface(folder, server, capfd):
    names = ["audit", "compare", "bob"]
    line = ["runs", "export", *names, "--folder", str(folder), "--mlflow", server, "--yes"]
    for added in (True, False):
        assert run([*line, "--experiment", "real", "--json"]) == 0
        out, _ = capfd.readouterr()
        assert [one["added"] for one in json.loads(out)["exported"]] == [added] * 3
    known = rest(server, "experiments/get-by-name", experiment_name="real")["experiment"]
    runs = rest(server, "runs/search", {"experiment_ids": [known["experiment_id"]]})["runs"]
    by_name = {one["info"]["run_name"]: one for one in runs}
    assert set(by_name) == {"audit", "compare", "compare sealed", "compare add:5", "bob"}
    assert {one["info"]["status"] for one in runs} == {"FINISHED"}
    bob = by_name["bob"]
    values = {one["key"]: one["value"] for one in bob["data"]["metrics"]}
    assert values["model/auc_held_out"] == 0.93
    params = {one["key"]: one["value"] for one in bob["data"]["params"]}
    assert params["mechanism"] == "add"
    tags = {one["key"]: one["value"] for one in by_name["audit"]["data"]["tags"]}
    assert tags["taciturn.ledger/label_epsilon_total"] == "inf"
    assert tags["taciturn.manifest"] == ResultFolder.read(folder / "audit").manifest.digest
    ident = bob["info"]["run_id"]
    curve = rest(server, "metrics/get-history", run_id=ident, metric_key="curve/held_out_auc")
    assert [one["step"] for one in curve["metrics"]] == [1, 2, 4]
    listed = rest(server, "artifacts/list", run_id=ident)["files"]
    assert [one["path"] for one in listed] == [MANIFEST, RESULT]
    query = urllib.parse.urlencode({"path": MANIFEST, "run_id": ident})
    content = asked(f"{server}/get-artifact?{query}")
    assert content == (folder / "bob" / MANIFEST).read_bytes()
