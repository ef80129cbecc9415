"""What a container gives a command: a closed root, and nowhere to run programs from.

The same commands run in processes of their own in mount namespaces like that; and in real
containers, where there is an engine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.party.sides import write_config, write_tables
from tests.system import NOT_TESTED, free_port
from tests.waiting import HANG

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "two-machines"
ROLES = ("alice", "bob")
# The party's two folders stay writable, /tmp cannot run programs, and everything else is closed.
BOX = """
set -e
for folder in party keys tmp; do mount --bind "$1/$folder" "$1/$folder"; done
mount -t tmpfs -o noexec,nosuid,nodev,size=64m none "$1/tmp"
for place in / /tmp "$(stat -c %m "$1")"; do
  mount -o remount,bind,ro "$place" 2>/dev/null || :
done
if touch "$1/open" 2>/dev/null; then exit 97; fi
printf '#!/bin/sh\\n' > "$1/tmp/program"
chmod +x "$1/tmp/program"
if "$1/tmp/program" 2>/dev/null; then exit 98; fi
rm "$1/tmp/program"
cd "$1/party"
shift
exec "$@"
"""


@dataclass(frozen=True)
class Box:
    """One side's folders, and commands that run in them alone."""

    role: str
    place: Path

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "taciturn", *words]
        environment = {
            **os.environ,
            "TMPDIR": str(self.place / "tmp"),
            "XDG_CONFIG_HOME": str(self.place / "keys"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return subprocess.Popen(
            ["unshare", "-m", "sh", "-c", BOX, "sh", str(self.place), *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> str:
        return ended(self.start(*words))


def ended(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 0, err
    return out


@pytest.fixture
def boxes(tmp_path: Path) -> dict[str, Box]:
    """Both sides, each with its files in a folder of its own; Bob makes the certificates."""
    trial = ["unshare", "-m", "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run(trial, capture_output=True).returncode:
        pytest.skip(f"{NOT_TESTED}a root that cannot be written; mount namespaces need root")
    address = f"127.0.0.1:{free_port()}"
    boxes = {role: Box(role, tmp_path / role) for role in ROLES}
    for role, box in boxes.items():
        for name in ("party", "keys", "tmp"):
            (box.place / name).mkdir(parents=True)
        folder = box.place / "party"
        write_tables(folder)
        (folder / f"{'bob' if role == 'alice' else 'alice'}.csv").unlink()
        write_config(folder, role, link={"listen" if role == "bob" else "connect": address})
    boxes["bob"].run("certs", "--out", "certs", "--name", "alice", "--name", "bob")
    shutil.copytree(tmp_path / "bob/party/certs", tmp_path / "alice/party/certs")
    return boxes


def together(boxes: dict[str, Box], command: str, *more: str) -> list[str]:
    """A command on both sides at the same time."""
    running = [box.start(command, f"{box.role}.toml", *more, "--json") for box in boxes.values()]
    return [ended(process) for process in running]


@pytest.mark.slow  # the runbook, which is run always, takes the same steps in ordinary folders
def test_every_command_runs_in_a_closed_box(boxes):
    # The library for it comes as a program in a temporary file.
    for printed in together(boxes, "align"):
        assert json.loads(printed)["common"] == 120
    together(boxes, "party", "--dry-run")
    together(boxes, "party")
    for role, box in boxes.items():
        party = box.place / "party"
        assert list((box.place / "keys").rglob("*.state.key"))
        for command in ("show", "list"):
            assert json.loads(box.run("model", command, f"{role}.model.json", "--json"))
        assert json.loads(box.run("doctor", f"{role}.toml", "--json"))["problems"] == 0
        shutil.copy(party / f"{role}.csv", party / "new.csv")
    predicted = together(boxes, "predict", "--rows", "new.csv")
    assert [json.loads(printed)["rows"] for printed in predicted] == [120, 120]


# --- the recipes ---------------------------------------------------------------------------------


def compose() -> dict[str, dict[str, object]]:
    services: dict[str, dict[str, object]] = yaml.safe_load(
        (EXAMPLE / "compose.yaml").read_text(encoding="utf-8")
    )["services"]
    return services


def test_the_two_services_are_closed_and_share_nothing():
    services = compose()
    assert sorted(services) == sorted(ROLES)
    folders = []
    for role, service in services.items():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["tmpfs"] == ["/tmp:noexec,nosuid,nodev"]  # noqa: S108 - in the container
        assert f"{role}.toml" in str(service["command"])
        volumes = service["volumes"]
        assert isinstance(volumes, list)
        folders += [volume.partition(":")[0] for volume in volumes]
        assert [volume.partition(":")[2] for volume in volumes] == ["/party", "/keys"]
    assert len(set(folders)) == len(folders)
