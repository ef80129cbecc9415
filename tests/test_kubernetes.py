"""The manifests of ``examples/kubernetes``: valid for the API, and what they run works."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from taciturn.model.share import ModelShare
from taciturn.transport.certs import make_certificates
from tests.party.sides import write_tables
from tests.system import NOT_TESTED, free_port
from tests.test_two_machines import unit
from tests.waiting import HANG

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "kubernetes"
ROLES = ("alice", "bob")
# Of each kind how many, at a side.
KINDS = {"Secret": 1, "PersistentVolumeClaim": 2, "Job": 1}


def documents(role: str) -> list[dict[str, Any]]:
    return [*yaml.safe_load_all((EXAMPLE / f"{role}.yaml").read_text(encoding="utf-8"))]


def one(role: str, kind: str) -> dict[str, Any]:
    (document,) = (part for part in documents(role) if part["kind"] == kind)
    return document


def container(role: str) -> dict[str, Any]:
    (container,) = one(role, "Job")["spec"]["template"]["spec"]["containers"]
    return dict(container)


@pytest.mark.parametrize("role", ROLES)
def test_each_document_is_valid_for_the_api(role):
    try:
        from kubernetes_validate import ValidationError, validate
    except ModuleNotFoundError:
        pytest.skip(f"{NOT_TESTED}the manifests for Kubernetes; get kubernetes-validate by pip")
    for document in documents(role):
        # The oldest that has all of it without a feature gate, and the newest of the package.
        for version in ("1.31", "1.37"):
            assert validate(document, version, strict=True)
    job = one(role, "Job")
    job["spec"]["template"]["spec"]["restartPolice"] = "Never"
    with pytest.raises(ValidationError):
        validate(job, "1.37", strict=True)


@pytest.mark.parametrize("role", ROLES)
def test_each_side_has_one_job_one_secret_and_its_own_volumes(role):
    kinds = [document["kind"] for document in documents(role)]
    assert {kind: kinds.count(kind) for kind in KINDS} == KINDS
    pod = one(role, "Job")["spec"]["template"]["spec"]
    names = {document["metadata"]["name"] for document in documents(role)}
    mounted = {name for volume in pod["volumes"] for name in named_by(volume)}
    assert mounted < names
    assert all(name.startswith(role) for name in names)
    paths = [mount["mountPath"] for mount in container(role)["volumeMounts"]]
    assert sorted(paths) == ["/keys", "/party", "/secret", "/tmp"]  # noqa: S108 - in the container


def named_by(volume: dict[str, Any]) -> list[str]:
    kinds = {"secret": "secretName", "persistentVolumeClaim": "claimName"}
    return [volume[kind][name] for kind, name in kinds.items() if kind in volume]


@pytest.mark.parametrize("role", ROLES)
def test_a_job_ends_for_the_exit_codes_after_which_a_service_does(role):
    _, lasting = one(role, "Job")["spec"]["podFailurePolicy"]["rules"]
    codes = unit()["Service"]["RestartPreventExitStatus"].split()
    assert lasting["onExitCodes"]["values"] == [*map(int, codes)]
    assert lasting["onExitCodes"]["containerName"] == container(role)["name"]


@pytest.mark.parametrize("role", ROLES)
def test_a_pod_has_no_rights(role):
    pod = one(role, "Job")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    (closed,) = (part["securityContext"] for part in pod["containers"])
    assert closed == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


class Pod:
    """A side's container as a process: its volumes are folders."""

    def __init__(self, role: str, folder: Path, certs: Path, port: int) -> None:
        self.role, self._folder = role, folder
        for name in ("secret", "party", "keys"):
            (folder / name).mkdir(parents=True)
        held: dict[str, str] = one(role, "Secret")["stringData"]
        self._secret = {**held, "database": f"sqlite:{folder / 'crm.db'}"}
        for name, text in held.items():
            if name.endswith((".pem", ".key")):
                text = (certs / name).read_text(encoding="utf-8")
            text = text.replace("/party/", f"{folder}/party/").replace(":9443", f":{port}")
            path = folder / "secret" / name
            path.write_text(text.replace("bob.example", "localhost"), encoding="utf-8")
            path.chmod(0o400)

    def start(self, command: str) -> subprocess.Popen[str]:
        described = container(self.role)
        first, path = described["args"]
        assert first == "party"
        environment = {
            name["name"]: self._secret[name["valueFrom"]["secretKeyRef"]["key"]]
            for name in described["env"]
        }
        return subprocess.Popen(
            [sys.executable, "-m", "taciturn", command, f"{self._folder}{path}"],
            env={**os.environ, **environment, "XDG_CONFIG_HOME": str(self._folder / "keys")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.mark.slow  # four processes; tests/test_databases.py takes the same steps always
def test_the_commands_of_both_jobs_align_and_train(tmp_path):
    make_certificates(tmp_path / "certs", [*ROLES])
    write_tables(tmp_path)
    port, pods = free_port(), []
    for role in ROLES:
        pods.append(Pod(role, tmp_path / role, tmp_path / "certs", port))
        frame = pl.read_csv(tmp_path / f"{role}.csv").rename({"sick": "benign"}, strict=False)
        with closing(sqlite3.connect(tmp_path / role / "crm.db")) as base:
            base.execute(f"create table customers ({', '.join(frame.columns)})")
            marks = ", ".join("?" * frame.width)
            base.executemany(f"insert into customers values ({marks})", frame.rows())  # noqa: S608
            base.commit()
    for command in ("align", "party"):
        running = [pod.start(command) for pod in pods]
        for process in running:
            said, _ = process.communicate(timeout=HANG)
            assert process.returncode == 0, said
    for role in ROLES:
        assert ModelShare.load(tmp_path / role / "party" / f"{role}.model.json").role == role
        # Nothing is written beside the volumes.
        assert len([*(tmp_path / role / "secret").iterdir()]) == 5


def test_the_page_turns_the_job_of_a_training_into_one_of_an_alignment():
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    (line,) = (line for line in page.splitlines() if line.strip().startswith("sed "))
    words = shlex.split(line.partition("|")[0])
    done = subprocess.run(words, cwd=EXAMPLE, capture_output=True, text=True, check=True)
    (job,) = (part for part in yaml.safe_load_all(done.stdout) if part["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert (job["metadata"]["name"], container["args"][0]) == ("alice-align", "align")
