"""Mutated bytes at a service: requests of a caller, and frames of a peer with a certificate.

Each is answered with the right score or refused by name, and the service goes on. What is inside a
ciphertext of the right form is the peer's own affair, and so are the rows that Bob asks for
(docs/threat_model.md): a score is compared where neither was touched.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from ops.tests.serve.services import Running, furnish, started
from ops.tests.serve.sides import Stand, alice_side, runs, serve_settings

from taciturn.engine.callbacks import noop
from taciturn.errors import PeerAbsent
from taciturn.party.endpoints import open_endpoint
from taciturn.transport.channel import Endpoints
from taciturn_ops.serve.alice import FeatureSide
from taciturn_ops.serve.batcher import ScoreRequest
from taciturn_ops.serve.http.requests import REASONS
from taciturn_ops.serve.rounds import Verdict
from taciturn_ops.serve.side import ServeSide
from tests.jobs.predict.test_sides import trained
from tests.modules import module_of
from tests.party.sides import NEWTON
from tests.party.wires import HookedEndpoint, Hooks, MutatingPeer
from tests.protocol.hostile import Mutator
from tests.waiting import HANG, wait_until

pytestmark = pytest.mark.slow
REQUESTS = 200
FRAMES = 60
AT_ONCE = 50
ROWS = [f"p{number:04d}" for number in range(120, 150)]
# Of what carries a frame: its kind and two numbers.
CARRIER_BYTES = 17
# Of a frame: its magic, version, kind and the number of the round.
FRAME_HEAD_BYTES = 10
LONG_BYTES = 1024


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("model"), mechanism="sealed", **NEWTON)


@pytest.fixture
def folder(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "it"))


def shown(title: str, counts: Counter[str], names: Counter[str]) -> None:
    print(f"\n{title}: tried {counts.total()}, {dict(counts)}; refused as {dict(names)}")


# --- requests -------------------------------------------------------------------------------------


BODIES = {
    "/v1/score": json.dumps({"id": "p0121"}).encode(),
    "/v1/scores": json.dumps({"ids": ["p0122", "p0123", "p0131"]}).encode(),
}


def request(path: str, token: str, body: bytes, *, chunked: bool = False) -> bytes:
    """A right one, as far as it is not its body that is wrong."""
    lines = [f"POST {path} HTTP/1.1", "Host: it", f"Authorization: Bearer {token}"]
    lines += ["Content-Type: application/json"]
    lines += ["Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"]
    if chunked:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return "\r\n".join([*lines, "", ""]).encode() + body


def mutated_requests(token: str) -> list[bytes]:
    """Half of them mutated as a whole, the others in their bodies alone."""
    mutate, bodies = Mutator(33), [*BODIES.values()]
    right = [
        request(path, token, body, chunked=chunked)
        for path, body in BODIES.items()
        for chunked in (False, True)
    ]
    changed: list[bytes] = []
    while len(changed) < REQUESTS:
        one = mutate(right)
        if len(changed) % 2:
            path = [*BODIES][len(changed) // 2 % 2]
            one = request(path, token, mutate([BODIES[path], *bodies]))
        if one and one not in right:
            changed.append(one)
    return changed


def answered(port: int, sent: bytes, wanted: dict[str, float]) -> tuple[str, str]:
    """How a request ended, and the name of its refusal."""
    with socket.create_connection(("127.0.0.1", port), HANG) as link:
        link.sendall(sent)
        answer = http.client.HTTPResponse(link)
        try:
            answer.begin()
            given = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as problem:
            return "wrong", f"{type(problem).__name__} for {sent!r}"
    if answer.status != 200:
        code = given["error"]["code"]
        named = code != "bug" and REASONS[code].status == answer.status
        return ("refused", code) if named else ("wrong", f"{code} for {sent!r}")
    rows = given.get("rows", [given])
    right = all(row["score"] == wanted[row["id"]] for row in rows if "refused" not in row)
    return ("right", "") if right else ("wrong", f"{given} for {sent!r}")


def test_a_mutated_request_has_the_right_score_or_a_named_refusal(folder):
    running: Running = furnish(folder)
    with started(running):
        given = running.request("POST", "/v1/scores", {"ids": ROWS}).json["rows"]
        wanted = {row["id"]: row["score"] for row in given}
        with ThreadPoolExecutor(AT_ONCE) as callers:
            port = running.port
            ends = [
                *callers.map(
                    lambda one: answered(port, one, wanted), mutated_requests(running.token)
                )
            ]
        after = running.request("POST", "/v1/scores", {"ids": ROWS}).json["rows"]
    counts = Counter(end for end, _ in ends)
    shown("mutated requests", counts, Counter(name for end, name in ends if end == "refused"))
    assert not [name for end, name in ends if end == "wrong"]
    assert counts["right"]
    assert counts["refused"]
    assert {row["id"]: row["score"] for row in after} == wanted
    assert "Traceback" not in running.bob.said() + running.alice.said()


# --- frames ---------------------------------------------------------------------------------------


class Peers(NamedTuple):
    """Both sides' endpoints, either of which may send a mutated frame: whole, or inside."""

    endpoint: HookedEndpoint
    whole: MutatingPeer
    inside: MutatingPeer


def head(start: int, frame: bytes) -> slice:
    """A long one is a ciphertext or a key, which is the peer's own affair: its head alone."""
    return slice(start, None if len(frame) < LONG_BYTES else CARRIER_BYTES + FRAME_HEAD_BYTES)


def mutating(endpoint: Endpoints, seed: int) -> Peers:
    assert not isinstance(endpoint, Mapping)
    whole, inside = (
        MutatingPeer(Mutator(seed), partial(head, start)) for start in (0, CARRIER_BYTES)
    )
    hooks = Hooks(sending=lambda frame: inside.changed(whole.changed(frame)))
    return Peers(HookedEndpoint(endpoint, hooks), whole, inside)


@contextmanager
def both(folder: Path) -> Iterator[tuple[Stand, FeatureSide, dict[str, Peers]]]:
    """Both sides over real links with certificates, either of which may send a mutated frame."""
    furnish(folder)
    configs = {role: serve_settings(folder, role) for role in ("alice", "bob")}
    with (
        open_endpoint(configs["bob"], noop) as bobs,
        open_endpoint(configs["alice"], noop) as alices,
    ):
        ends = {"bob": mutating(bobs, 1), "alice": mutating(alices, 2)}
        stand = Stand(configs["bob"], ends["bob"].endpoint)
        alice = alice_side(configs["alice"])
        with runs(alice, ends["alice"].endpoint):
            stand.start()
            try:
                wait_until(lambda: stand.batcher.stats.connected)
                yield stand, alice, ends
            finally:
                stand.close()


def test_a_mutated_frame_is_taken_or_refused_and_the_service_goes_on(folder, monkeypatch):
    """After each of them an honest round has the right score, over the same link or another."""
    monkeypatch.setattr(module_of(ScoreRequest), "BEAT_SECONDS", 0.1)
    # Who is refused again and again need not wait ever longer here.
    monkeypatch.setattr(module_of(ServeSide), "LONGEST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(module_of(ServeSide), "SILENT_SECONDS", 3.0)
    monkeypatch.setattr(module_of(ServeSide), "REPEAT_SECONDS", 0.0)
    draw, counts = np.random.default_rng(33), Counter[str]()
    with both(folder) as (stand, alice, ends):
        wanted = stand.scores(ROWS)
        for trial in range(FRAMES):
            sender = ("alice", "bob")[trial % 2]
            name, meetings = ROWS[trial % len(ROWS)], stand.batcher.stats.meetings
            peer = ends[sender].inside if trial % 4 > 1 else ends[sender].whole
            peer.arm(int(draw.integers(4)))
            outcome = ended(stand, name, wanted if sender == "alice" else None)
            wait_until(lambda: peer.done)  # noqa: B023 - it is called at once
            honest = ended(stand, name, wanted)
            while honest != "right" and stand.batcher.failure is None:
                # The frame may have been mutated after the first round.
                assert honest == "refused"
                honest = ended(stand, name, wanted)
            if stand.batcher.failure is not None or outcome == "wrong":
                counts["wrong"] += 1
            elif outcome == "refused" or stand.batcher.stats.meetings > meetings:
                counts["refused"] += 1
            else:
                counts["right"] += 1
        assert stand.scores(ROWS) == wanted
        assert alice.rounds
    reasons = Counter(reason for role in ("alice", "bob") for reason in noted(folder, role))
    shown("mutated frames", counts, reasons)
    assert not counts["wrong"]
    # Each is named on one side at least.
    assert reasons.total() >= counts["refused"] > 0


def noted(folder: Path, role: str) -> Iterator[str]:
    """Why meetings have ended, as a side's log has it."""
    for line in (folder / f"{role}.log").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["event"] == "the meeting has ended":
            reason = entry["reason"].removeprefix("the peer aborted: ")
            yield re.sub(r"\d+", "N", reason)[:60]


def ended(stand: Stand, name: str, wanted: dict[str, float] | None) -> str:
    """How a round for one row ended; without what is wanted any score will do."""
    try:
        result = stand.ask([name])
    except PeerAbsent:
        return "refused"
    if result.verdicts != (Verdict.HELD,):
        return "refused"
    right = wanted is None or result.scores.tolist() == [wanted[name]]
    return "right" if right else "wrong"
