"""Both sides of a service as processes, with certificates, and requests to Bob's."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.tests.serve.sides import serve_settings

from taciturn.transport.certs import make_certificates
from tests.party.hosts import OneHost, Side
from tests.test_two_machines import free_port
from tests.waiting import HANG, wait_until

ADDRESS = re.compile(r"https?://[^:\s]+:(\d+)")


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def code(self) -> str:
        """The name of a refusal."""
        return str(self.json["error"]["code"])


class Service(Side):
    """One process of ``taciturn serve``."""

    def start(self, command: str = "serve", *options: str) -> None:
        """What it said before is gone: the address is that of this start."""
        self.file("err").unlink(missing_ok=True)
        super().start(command, *options)

    def said(self) -> str:
        return "".join(self.file(ending).read_text("utf-8") for ending in ("out", "err"))


@dataclass
class Running:
    """A service, and a caller's token."""

    alice: Service
    bob: Service
    token: str

    @property
    def port(self) -> int:
        wait_until(lambda: ADDRESS.search(self.bob.said()) or self.bob_has_ended, "no address")
        address = ADDRESS.search(self.bob.said())
        assert address is not None, self.bob.said()
        return int(address[1])

    @property
    def bob_has_ended(self) -> bool:
        return self.bob.process is not None and self.bob.process.poll() is not None

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        token: str | None = None,
    ) -> Reply:
        """One request; a body that is no text is sent as JSON."""
        given = {"Authorization": f"Bearer {self.token if token is None else token}"}
        if body is not None:
            given["Content-Type"] = "application/json"
        given |= headers or {}
        data = body if isinstance(body, bytes | str | None) else json.dumps(body)
        sent = data.encode() if isinstance(data, str) else data
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG)
        try:
            # A server that has refused a body need not read it.
            with suppress(BrokenPipeError, ConnectionResetError):
                link.request(method, path, sent, {k: v for k, v in given.items() if v})
            answer = link.getresponse()
            return Reply(answer.status, answer.read().decode(), dict(answer.getheaders()))
        finally:
            link.close()

    def score(self, name: str, **columns: Any) -> Reply:
        return self.request("POST", "/v1/score", {"id": name, **columns})

    def ready(self) -> bool:
        try:
            return self.request("GET", "/readyz").status == 200
        except OSError:
            return False

    def wait_ready(self) -> None:
        wait_until(self.ready, f"{self.alice.said()}\n{self.bob.said()}")


def furnish(folder: Path, **settings: dict[str, Any]) -> Running:
    """Certificates, addresses and a caller for a folder with a model; nothing is started."""
    make_certificates(folder / "certs", ["alice", "bob"])
    port = free_port()
    for role, address in (
        ("bob", f'listen = "127.0.0.1:{port}"'),
        ("alice", f'connect = "127.0.0.1:{port}"'),
    ):
        path = folder / f"{role}.toml"
        text = re.sub(
            r'^(listen|connect) = ".*"$', address, path.read_text(encoding="utf-8"), flags=re.M
        )
        path.write_text(text, encoding="utf-8")
    serve_settings(folder, "alice", **settings.get("alice", {}))
    serve_settings(
        folder,
        "bob",
        **{
            "tokens": "callers.toml",
            "address": "127.0.0.1:0",
            "request-seconds": HANG,
            **settings.get("bob", {}),
        },
    )
    from taciturn_ops.serve.http.callers import new_token

    token = new_token(folder / "callers.toml", "crm")
    here = OneHost({})
    return Running(Service(here, folder, "alice"), Service(here, folder, "bob"), token)


@contextmanager
def started(service: Running) -> Iterator[Running]:
    """The service while it runs."""
    sides = (service.alice, service.bob)
    for side in sides:
        side.start()
    try:
        service.wait_ready()
        yield service
    finally:
        for side in sides:
            if side.process is not None:
                side.stop()
