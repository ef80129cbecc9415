"""``asked_for``: which of the page's two resources a request names, if it may have any.

**Guarantee.** Whoever does not know the token learns nothing: for every request that is not a plain
GET of one of the two paths, with the token and under the server's own name, the answer is None, and
the server closes the connection without a byte.
"""

from __future__ import annotations

import hmac
from typing import Literal, TypeAlias

from taciturn.dashboard.address import HOST, Address

Resource: TypeAlias = Literal["page", "events"]
_RESOURCES: dict[bytes, Resource] = {b"": "page", b"events": "events"}


def asked_for(head: bytes, address: Address) -> Resource | None:
    r"""What a request asks for; None where it gets no answer.

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
