"""The runbook for three parties: its commands run as they are written, in three terminals."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from taciturn.arrays import FloatArray
from taciturn.model.share import ModelShare
from taciturn.model.whole import whole_model
from taciturn.numerics.metrics import auc
from tests.system import free_port
from tests.test_two_machines import Terminal, accept_exposure
from tests.waiting import HANG

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "three-parties"
RUNBOOK = (EXAMPLE / "README.md").read_text(encoding="utf-8")
SIDES = ("bob", "alice-1", "alice-2")


def blocks() -> list[tuple[str, list[str]]]:
    """Each block of commands with whose terminal it is for."""
    pattern = re.compile(r"```sh (\S+)\n(.*?)```", re.DOTALL)
    return [(who, text.strip().splitlines()) for who, text in pattern.findall(RUNBOOK)]


def steps() -> list[list[tuple[str, list[str]]]]:
    """Blocks that belong together: one of each side, or Bob's alone."""
    grouped: list[list[tuple[str, list[str]]]] = []
    for who, lines in blocks():
        if who == "bob":
            grouped.append([])
        grouped[-1].append((who, lines))
    return grouped


def test_the_runbook_has_a_block_for_each_terminal():
    assert [len(step) for step in steps()] == [1, 1, 3, 3, 3, 3, 1]
    assert {who for who, _ in blocks()} == {*SIDES}


@pytest.mark.slow  # a dozen processes, half a minute
def test_the_runbook_from_nothing_to_scores(tmp_path):
    folder = tmp_path / "trial"
    shutil.copytree(EXAMPLE, folder)
    terminals = {side: Terminal(side, folder) for side in SIDES}
    port = free_port()
    try:
        for number, step in enumerate(steps()):
            run(step, terminals, port)
            if number == 1:
                accept_exposure(*(folder / f"{side}.toml" for side in SIDES[1:]))
    finally:
        for terminal in terminals.values():
            terminal.leave()
    shares = [ModelShare.load(folder / f"{side}.model.json") for side in SIDES]
    assert len({share.session for share in shares}) == 1
    model, frames = whole_model(*shares), tables(folder)
    with (folder / "scores.csv").open(newline="") as stream:
        scores = [float(line["score"]) for line in csv.DictReader(stream)]
    joined = model.scores(*frames)
    # Rows are rounded to the grid before they are multiplied.
    assert np.abs(joined - np.array(scores)).max() < 0.05
    assert (folder / "model.onnx").stat().st_size > 0
    assert_as_good_as_in_one_place(frames, np.array(scores))


def run(step: list[tuple[str, list[str]]], terminals: dict[str, Terminal], port: int) -> None:
    """All blocks of a step at once, each block's commands one after the other."""
    first, lines = step[0]
    for line in lines[:-1]:
        finish(terminals[first].start(line))
    started = [terminals[who].start(at_port(lines[-1], port)) for who, lines in step]
    for process in started:
        finish(process)


def finish(process: subprocess.Popen[str]) -> None:
    output, _ = process.communicate(timeout=HANG)
    assert process.returncode == 0, output


def at_port(line: str, port: int) -> str:
    """The runbook's port may be taken on this machine."""
    words = shlex.split(line)
    return f"{line} --address localhost:{port}" if words[:2] == ["taciturn", "init"] else line


def tables(folder: Path) -> list[pl.DataFrame]:
    """The rows that were scored, in their order; Bob's last."""
    scored = pl.read_csv(folder / "scores.csv").select("id")
    return [
        scored.join(pl.read_csv(folder / f"{side}.csv"), on="id", maintain_order="left")
        for side in ("alice-1", "alice-2", "bob")
    ]


def assert_as_good_as_in_one_place(frames: list[pl.DataFrame], scores: FloatArray) -> None:
    from sklearn.linear_model import LogisticRegression

    truth = frames[-1]["benign"].to_numpy()
    columns = [frame.drop("id", "benign", strict=False).to_numpy() for frame in frames]
    values = np.hstack(columns)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    alone = LogisticRegression(max_iter=1000).fit(values, truth).decision_function(values)
    assert auc(scores, truth) > auc(alone, truth) - 0.01
