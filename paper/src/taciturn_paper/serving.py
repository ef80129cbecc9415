"""Scores on demand: how long one row and a thousand take, how many requests a second, for how long.

Census-income in two folders, half of its columns each; a model is trained between two processes
(``sealed`` unless another mechanism is named), and served by two others. A caller's process asks
for one row and for a thousand, then 1, 8 and 32 callers ask at the same time. Beside it, in the
same run, a plain scikit-learn model of the joined table stands behind the same ASGI server: what
one costs more than the other is the price of privacy. Ten thousand served scores are compared with
those of ``taciturn predict``. With ``--soak SECONDS`` eight callers go on for so long, and the
memory of both processes is written down.

Run it with ``python -m taciturn_paper.serving FOLDER [--soak 300]``.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from taciturn.data.prepare import fit
from taciturn.data.prepare_settings import PrepareSettings
from taciturn_paper.companies import Company, prepare_folders
from taciturn_paper.sides import free_port

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request

CALLERS = (1, 8, 32)
BATCH = 1000
PARITY_ROWS = 10_000
SERVED_AT = re.compile(r"callers reach the service at http://127\.0\.0\.1:(\d+)")
READY_SECONDS = 120.0


@dataclass(slots=True)
class Seen:
    """Seconds of each answer to a caller, and the statuses of failures."""

    seconds: list[float] = field(default_factory=list)
    refused: dict[int, int] = field(default_factory=dict)

    def figures(self, wall: float) -> dict[str, Any]:
        """Percentiles in milliseconds, and requests a second."""
        p50, p95, p99 = np.percentile(self.seconds, [50, 95, 99]) * 1000
        return {
            "requests": len(self.seconds),
            "p50 ms": round(p50, 2),
            "p95 ms": round(p95, 2),
            "p99 ms": round(p99, 2),
            "a second": round(len(self.seconds) / wall, 1),
            **({"refused": self.refused} if self.refused else {}),
        }


class Caller:
    """One connection that is kept, and asks one request after the other."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token

    async def open(self) -> None:
        """Connects."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        plug: socket.socket = self._writer.get_extra_info("socket")
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def ask(self, path: str, content: object) -> tuple[int, Any]:
        """The status and the JSON of an answer."""
        body = json.dumps(content).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: it\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        status = int((await self._reader.readline()).split()[1])
        length = 0
        while (line := await self._reader.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return status, json.loads(await self._reader.readexactly(length))

    def close(self) -> None:
        """Leaves."""
        self._writer.close()


async def load(
    port: int, token: str, callers: int, seconds: float, question: Callable[[int], tuple[str, Any]]
) -> dict[str, Any]:
    """Callers that ask without a pause for so long."""
    seen, over = Seen(), time.perf_counter() + seconds

    async def call(number: int) -> None:
        caller, turn = Caller(port, token), number
        await caller.open()
        while time.perf_counter() < over:
            start = time.perf_counter()
            status, _ = await caller.ask(*question(turn))
            turn += callers
            if status == 200:
                seen.seconds.append(time.perf_counter() - start)
            else:
                seen.refused[status] = seen.refused.get(status, 0) + 1
        caller.close()

    start = time.perf_counter()
    await asyncio.gather(*(call(number) for number in range(callers)))
    return seen.figures(time.perf_counter() - start)


def measured(port: int, token: str, ids: list[str], seconds: float) -> dict[str, Any]:
    """All loads on one service."""

    def one(turn: int) -> tuple[str, Any]:
        return "/v1/score", {"id": ids[turn % len(ids)]}

    def many(turn: int) -> tuple[str, Any]:
        start = turn * BATCH % (len(ids) - BATCH)
        return "/v1/scores", {"ids": ids[start : start + BATCH]}

    asyncio.run(load(port, token, 2, 1.0, one))
    asyncio.run(load(port, token, 1, 0.5, many))
    return {
        **{
            f"one row, {callers} callers": asyncio.run(load(port, token, callers, seconds, one))
            for callers in CALLERS
        },
        f"{BATCH} rows, 1 caller": asyncio.run(load(port, token, 1, seconds, many)),
    }


def trained(folder: Path, mechanism: str, passes: int) -> tuple[Company, Company]:
    """Both sides with their shares of a model; kept from a run before, where there is one."""
    if (folder / "bank" / "bob.model.json").exists():
        return Company("alice", folder / "telco"), Company("bob", folder / "bank")
    alice, bob = prepare_folders(folder)
    for side in (alice, bob):
        path = side.folder / side.file
        text = path.read_text(encoding="utf-8").partition("\n[study]")[0]
        text = re.sub(r'(?m)^mechanism = ".*?"', f'mechanism = "{mechanism}"', text)
        text = re.sub(r"(?m)^#? *passes = \d+", f"passes = {passes}", text)
        path.write_text(text, encoding="utf-8")
    with (bob.folder / bob.file).open("a", encoding="utf-8") as stream:
        stream.write('address = "127.0.0.1:0"\ntokens = "callers.toml"\n')
    other = alice.start("party", "alice.toml")
    bob.run("party", "bob.toml")
    if other.wait():
        raise SystemExit("alice: taciturn party failed")
    return alice, bob


def served(alice: Company, bob: Company) -> tuple[list[subprocess.Popen[str]], int, str]:
    """Both sides serving: their processes, the port, and a caller's token."""
    token = subprocess.run(
        [sys.executable, "-m", "taciturn", "serve", "bob.toml", "--new-token", "bench"],
        cwd=bob.folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    screen = bob.folder / "screen.log"
    start = screen.stat().st_size
    sides = [side.start("serve", side.file) for side in (alice, bob)]
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        said = screen.read_bytes()[start:].decode(errors="replace")
        address = SERVED_AT.search(said)
        if address and "serving" in said:
            return sides, int(address[1]), token
        time.sleep(0.1)
    ended(sides)
    raise SystemExit(f"the two do not serve: {screen}")


def ended(sides: list[subprocess.Popen[str]]) -> None:
    """Ends processes that this program has started."""
    for side in sides:
        side.send_signal(signal.SIGTERM)
    for side in sides:
        side.wait()


async def scores_of(port: int, token: str, ids: list[str]) -> dict[str, float]:
    """Served scores, by batches and, of the last hundred, one by one."""
    caller, scores = Caller(port, token), dict[str, float]()
    await caller.open()
    for start in range(0, len(ids) - 100, BATCH):
        part = ids[start : min(start + BATCH, len(ids) - 100)]
        _, answer = await caller.ask("/v1/scores", {"ids": part})
        scores |= {row["id"]: row["score"] for row in answer["rows"]}
    for name in ids[-100:]:
        _, answer = await caller.ask("/v1/score", {"id": name})
        scores[name] = answer["score"]
    caller.close()
    return scores


def predicted(alice: Company, bob: Company) -> dict[str, float]:
    """Predictions of ``taciturn predict`` for all rows."""
    other = alice.start("predict", "alice.toml", "--rows", "alice.csv")
    bob.run("predict", "bob.toml", "--rows", "bob.csv", "--out", "scores.csv")
    if other.wait():
        raise SystemExit("alice: taciturn predict failed")
    with (bob.folder / "scores.csv").open(encoding="utf-8") as stream:
        return {row["id"]: float(row["score"]) for row in csv.DictReader(stream)}


def resident(process: subprocess.Popen[str]) -> float:
    """MiB that a process has in memory."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def soaked(
    sides: list[subprocess.Popen[str]], port: int, token: str, ids: list[str], seconds: float
) -> dict[str, Any]:
    """Eight callers for so long; the memory of both processes every few seconds."""
    memory: list[list[float]] = []

    async def watch() -> None:
        while True:
            memory.append([round(resident(side), 1) for side in sides])
            await asyncio.sleep(max(1.0, seconds / 20))

    watching = asyncio.create_task(watch())
    figures = await load(
        port, token, 8, seconds, lambda turn: ("/v1/score", {"id": ids[turn % len(ids)]})
    )
    watching.cancel()
    # The first tenth is the start; growth is a line through the rest.
    rest = np.array(memory[max(1, len(memory) // 10) :])
    slopes = np.polyfit(np.arange(len(rest)), rest, 1)[0] * len(rest)
    return {
        **figures,
        "memory MiB, Alice and Bob": memory,
        "growth MiB over the soak": [round(float(slope), 2) for slope in slopes],
    }


def plain_application(folder: Path) -> Starlette:
    """A scikit-learn model of the joined table, which answers the same requests by id."""
    from sklearn.linear_model import LogisticRegression
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    hers = pl.read_csv(folder / "telco" / "alice.csv")
    both = hers.join(pl.read_csv(folder / "bank" / "bob.csv"), on="person")
    frame = both.drop("person", "over-50k")
    values = fit(frame, PrepareSettings()).apply(frame)
    places = {name: place for place, name in enumerate(both["person"].to_list())}
    labels = both["over-50k"].to_numpy().astype(np.int8)
    model = LogisticRegression(max_iter=200).fit(values, labels)

    async def one(request: Request) -> JSONResponse:
        name = (await request.json())["id"]
        score = float(model.decision_function(values[[places[name]]])[0])
        return JSONResponse({"id": name, "score": score, "class": int(score > 0)})

    async def several(request: Request) -> JSONResponse:
        names = (await request.json())["ids"]
        scores = model.decision_function(values[[places[name] for name in names]]).tolist()
        rows = [{"id": name, "score": score} for name, score in zip(names, scores, strict=True)]
        return JSONResponse({"rows": rows})

    routes = [Route("/v1/score", one, methods=["POST"])]
    return Starlette(routes=[*routes, Route("/v1/scores", several, methods=["POST"])])


def plain_service(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A plain application in a separate process, behind the server of ``taciturn serve``."""
    port = free_port()
    own = [sys.executable, "-m", "taciturn_paper.serving", str(folder), "--plain", str(port)]
    process = subprocess.Popen(own, text=True)  # noqa: S603 - this program itself
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, port
        time.sleep(0.1)
    raise SystemExit("the plain service does not begin")


def main() -> None:
    """Run the whole benchmark and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mechanism", default="sealed")
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0, help="Of each load.")
    parser.add_argument("--soak", type=float, default=0.0, help="Seconds; none by default.")
    parser.add_argument("--plain", type=int, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.plain is not None:
        import uvicorn

        uvicorn.run(
            plain_application(given.folder),
            host="127.0.0.1",
            port=given.plain,
            access_log=False,
            log_level="warning",
            http="httptools",
        )
        return
    alice, bob = trained(given.folder, given.mechanism, given.passes)
    ids = pl.read_csv(bob.folder / "bob.csv", columns=["person"])["person"].to_list()
    plain, plain_port = plain_service(given.folder)
    try:
        beside = measured(plain_port, "none", ids, given.seconds)
    finally:
        ended([plain])
    sides, port, token = served(alice, bob)
    try:
        ours = measured(port, token, ids, given.seconds)
        scores = asyncio.run(scores_of(port, token, ids[:PARITY_ROWS]))
        soak = asyncio.run(soaked(sides, port, token, ids, given.soak)) if given.soak else None
    finally:
        ended(sides)
    wanted = predicted(alice, bob)
    differ = sum(scores[name] != wanted[name] for name in scores)
    report = {
        "mechanism": given.mechanism,
        "served": ours,
        "scikit-learn behind the same server": beside,
        "times as long (p50)": {
            name: round(ours[name]["p50 ms"] / beside[name]["p50 ms"], 1) for name in ours
        },
        "parity with predict": {"rows": len(scores), "differ": differ},
        **({"soak": soak} if soak else {}),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
