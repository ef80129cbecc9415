"""``Address``: where the dashboard is served, the file that keeps it, and who is answered there.

The file is as secret as the page: who knows the token may read it. It is mode 600; one that others
may read, or that is no such file, is not used, and replaced.

**Guarantee.** A client without the token learns nothing: for every request that is not a plain GET
of one of the two paths, with the token and under the server's own name, the answer is None, and the
server closes the connection without a byte.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from taciturn.files import write_private
from taciturn.rng import SystemEntropy

HOST = "127.0.0.1"
TOKEN_BYTES = 32
_URL = re.compile(rf"http://{re.escape(HOST)}:(\d{{1,5}})/([A-Za-z0-9_-]{{43}})/")
_MOST_LETTERS = 1000


def new_token() -> str:
    """Secret part of an address: 32 random bytes, in 43 URL-safe characters."""
    return base64.urlsafe_b64encode(SystemEntropy().token(TOKEN_BYTES)).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a page; ``token`` is the secret part of the path."""

    port: int
    token: str = field(repr=False)

    @property
    def url(self) -> str:
        """URL for a browser."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    @classmethod
    def kept(cls, path: Path) -> Address | None:
        """Read the address from a file; None where there is none that can be used."""
        try:
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                return None
            with path.open(encoding="ascii") as stream:
                values = json.loads(stream.read(_MOST_LETTERS))
        except (OSError, ValueError):
            return None
        url = values.get("address") if isinstance(values, dict) else None
        match = _URL.fullmatch(url) if isinstance(url, str) else None
        return None if match is None else cls(int(match[1]), match[2])

    def keep(self, path: Path) -> None:
        """Write the address to a file; ``OutputError`` if that fails."""
        write_private(path, json.dumps({"address": self.url}) + "\n", "address of the live page")


Resource: TypeAlias = Literal["page", "events"]
_RESOURCES: dict[bytes, Resource] = {b"": "page", b"events": "events"}


def asked_for(head: bytes, address: Address) -> Resource | None:
    r"""Resource that a request asks for; None where it gets no answer.

    ``head`` is the request's first lines, the empty one at their end included.

    >>> here = Address(80, "ab")
    >>> asked_for(b"GET /ab/ HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", here)
    'page'
    >>> asked_for(b"GET /ab/ HTTP/1.1\r\nHost: elsewhere:80\r\n\r\n", here)
    """
    first, *fields = head.split(b"\r\n")
    parts = first.split(b" ")
    if len(parts) != 3 or parts[0] != b"GET" or parts[2] != b"HTTP/1.1":
        return None
    if not _for_this_host(fields, address.port):
        return None
    # A site that has its name point here would be another origin, with another name above.
    path = parts[1].split(b"/")
    if len(path) != 3 or path[0]:
        return None
    if not hmac.compare_digest(path[1], address.token.encode()):
        return None
    return _RESOURCES.get(path[2])


def _for_this_host(fields: list[bytes], port: int) -> bool:
    """Whether the one Host field names this machine: a rebound name would be another."""
    hosts = [
        value.strip()
        for field in fields
        for name, _, value in [field.partition(b":")]
        if name.lower() == b"host"
    ]
    own = [f"{host}:{port}".encode() for host in (HOST, "localhost")]
    return len(hosts) == 1 and hosts[0].lower() in own
