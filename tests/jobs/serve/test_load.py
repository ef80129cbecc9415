"""A service under load: every answer is right, and memory does not grow. The long one is
``python -m taciturn_paper.serving FOLDER --soak 300``."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from taciturn_paper.serving import Caller, resident
from tests.jobs.serve.services import Running, furnish, started

SECONDS = 20.0
# MiB that a process may have more at the end than after a third: what allocators keep.
GROWTH = 24.0


@pytest.mark.slow  # twenty seconds of load
@pytest.mark.parametrize("callers", [1, 8, 32])
def test_callers_at_the_same_time_get_right_scores_and_memory_stays(folder, callers):
    running = furnish(folder)
    with started(running):
        rows = [f"p{number:04d}" for number in range(120, 150)]
        given = running.request("POST", "/v1/scores", {"ids": rows}).json["rows"]
        wanted = {row["id"]: row["score"] for row in given}
        memory = asyncio.run(under_load(running, callers, wanted))
    third = len(memory) // 3
    growth = np.array(memory[-3:]).mean(axis=0) - np.array(memory[third : third + 3]).mean(axis=0)
    assert (growth < GROWTH).all(), memory


async def under_load(running: Running, callers: int, wanted: dict[str, float]) -> list[list[float]]:
    """Asks for so long, compares every score, and gives the memory of both sides over time."""
    over, names, memory = time.monotonic() + SECONDS, [*wanted], list[list[float]]()

    async def call(number: int) -> int:
        caller, turn = Caller(running.port, running.token), number
        await caller.open()
        while time.monotonic() < over:
            name = names[turn % len(names)]
            status, answer = await caller.ask("/v1/score", {"id": name})
            assert status == 200, answer
            assert answer["score"] == wanted[name]
            turn += 1
        caller.close()
        return turn - number

    async def watch() -> None:
        sides = [side.process for side in (running.alice, running.bob)]
        while time.monotonic() < over:
            memory.append([resident(side) for side in sides if side is not None])
            await asyncio.sleep(0.5)

    *counts, _ = await asyncio.gather(*(call(number) for number in range(callers)), watch())
    assert all(counts)
    return memory
