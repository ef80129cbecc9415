"""The notebook runs from its first cell to its last, and keeps what it showed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "story.ipynb"
# How long the trainings of all cells but one are.
EPOCHS = r"\"seed\": 7, \"epochs\": 5"
# In a process of its own: a kernel's client leaves sockets to the collector. It talks to the kernel
# over files in its folder, not over ports.
EXECUTE = """
import sys
import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
kernel = AsyncKernelManager(kernel_name="python3", transport="ipc")
NotebookClient(notebook, timeout=600, km=kernel).execute()
nbformat.write(notebook, sys.argv[2])
"""


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def kinds(path: Path) -> list[str]:
    """What each output is: the richest form of it, or a stream; bars come and go by the clock."""
    return [
        next(iter(output.get("data", {})), output["output_type"])
        for cell in code_cells(path)
        for output in cell["outputs"]
        if "<progress" not in "".join(output.get("data", {}).get("text/html", ""))
    ]


@pytest.mark.slow  # half a minute; that a result shows itself in a cell is tried always
@pytest.mark.parametrize(
    "epochs",
    [
        1,
        pytest.param(5, marks=pytest.mark.slow),  # as it is kept: half a minute
    ],
)
def test_every_cell_runs_and_shows_what_the_kept_notebook_shows(tmp_path, epochs):
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert text.count(EPOCHS) == 1
    asked, made = tmp_path / "asked.ipynb", tmp_path / "made.ipynb"
    asked.write_text(text.replace(EPOCHS, EPOCHS.replace("5", str(epochs))), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(asked), str(made)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert kinds(made) == kinds(NOTEBOOK)
    assert kinds(made).count("image/png") == 5


def test_it_is_kept_with_its_pictures_and_without_a_machines_paths():
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 500_000
    for place in ("/home/", "/root/", "/usr/", "/var/"):
        assert place not in text
    assert "stream" not in kinds(NOTEBOOK)
    cells = code_cells(NOTEBOOK)
    assert all(cell["outputs"] for cell in cells)
    assert 8 <= len(cells) <= 12


RESULTS = (
    "import taciturn\n"
    'run = {"dataset": "breast-cancer", "mechanism": "none", "scheme": "clear", "seed": 1}\n'
    "result = taciturn.train(**run, epochs=1)\nresult",
    "result.plot()",
    "result.to_pandas()",
    "taciturn.check(**run, epochs=1)",
    # Long enough for a bar, however fast the machine: each event waits.
    "import time, taciturn.engine.progress as progress\n"
    "seen = progress.ProgressEstimate.advance\n"
    "def slow(self, *far):\n    time.sleep(0.05)\n    seen(self, *far)\n"
    "progress.ProgressEstimate.advance = slow\n"
    "taciturn.train(**run, epochs=1)",
    "taciturn.train(**run, epochs=1, observe=lambda event: None)",
)


@pytest.mark.slow  # some seconds: a kernel of its own
def test_a_result_shows_itself_in_a_cell(tmp_path):
    """As HTML, as a picture, as a frame; beside each its one line of text."""
    asked, made = tmp_path / "asked.ipynb", tmp_path / "made.ipynb"
    empty: dict[str, Any] = {"metadata": {}, "outputs": [], "execution_count": None}
    cells = [{"cell_type": "code", "source": source, **empty} for source in RESULTS]
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}
    asked.write_text(json.dumps(notebook), encoding="utf-8")
    command = [sys.executable, "-c", EXECUTE, str(asked), str(made)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    shown = [cell["outputs"][-1]["data"] for cell in code_cells(made)]
    assert "<table" in "".join(shown[0]["text/html"])
    assert "".join(shown[0]["text/plain"]).startswith("TrainResult(breast-cancer, none: ")
    assert "image/png" in shown[1]
    assert "accuracy" in "".join(shown[2]["text/html"])
    assert "exact-solve" in "".join(shown[3]["text/html"])
    bars = [
        "".join(output.get("data", {}).get("text/html", ""))
        for output in code_cells(made)[4]["outputs"]
    ]
    # One output, which was replaced until the end; the result stands below it.
    (bar,) = (bar for bar in bars if "<progress" in bar)
    assert 'value="114" max="114"' in bar
    assert "<table" in bars[-1]
    # Who watches by other means is shown no bar.
    assert len(code_cells(made)[5]["outputs"]) == 1
