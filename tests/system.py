"""What tests need beyond Python: where it is missing they are skipped, and named at the end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Reasons that begin so are repeated at the end of a run: something was not tested.
NOT_TESTED = "not tested: "
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser_path() -> str:
    """The browser's program; skips the test where there is none."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"{NOT_TESTED}the report in a browser; get Chromium by `make system`")
    return path


def promtool_path() -> str:
    """Prometheus' own checker; skips the test where there is none."""
    path = shutil.which("promtool")
    if path is None:
        pytest.skip(f"{NOT_TESTED}the alert rules by Prometheus; get promtool from its package")
    return path


def spu_python() -> Path:
    """A Python that has SPU; skips the test where none is named."""
    named = os.environ.get("TACITURN_SPU_PYTHON")
    if not named:
        pytest.skip(
            f"{NOT_TESTED}a training under SPU; make a Python for it (docs/performance.md), and "
            "set TACITURN_SPU_PYTHON to its path"
        )
    return Path(named)


def mlflow_python() -> Path:
    """A Python that has the whole of MLflow; skips the test where there is none."""
    named = os.environ.get("TACITURN_MLFLOW_PYTHON")
    python = Path(named) if named else Path(__file__).parents[1] / ".mlflow" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{NOT_TESTED}an export to a server of MLflow; get one by `make mlflow`")
    return python


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A disk of so many bytes, mounted at a new folder; skips the test where none can be had."""
    place = folder / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    mounted = shutil.which("mount") and not subprocess.run(command, capture_output=True).returncode
    if not mounted:
        pytest.skip(f"{NOT_TESTED}a disk without room; mounting a small one needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def _obstacle() -> str:
    """What stands in the way of two hosts on this machine; empty, if nothing does."""
    if shutil.which("ip") is None:
        return "get iproute2 by `make system`"
    if os.geteuid() != 0:
        return "network namespaces need root"
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, check=False)
    return "this kernel gives no network namespaces" if listed.returncode else ""


_OBSTACLE = _obstacle()
needs_namespaces = pytest.mark.skipif(bool(_OBSTACLE), reason=f"{NOT_TESTED}two hosts; {_OBSTACLE}")
