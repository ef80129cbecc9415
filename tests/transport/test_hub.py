"""One port for several peers: each has its place, and nobody takes another's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from taciturn.errors import ConnectionLost, PeerAbsent, PeerRefused, TransportError
from taciturn.transport.dial import DialEndpoint
from taciturn.transport.grpc_channel import objection
from taciturn.transport.serve import Hub
from taciturn.transport.tls import Credentials
from tests.expected import refused
from tests.modules import module_of
from tests.transport.parties import HOST, QUICK, Authority, in_thread
from tests.waiting import HANG, wait_until

NAMES = ("alice-1", "alice-2", "alice-3")


@pytest.fixture(scope="module")
def star(authority: Authority) -> Authority:
    """Several Alices, and a certificate with the name of one and another key."""
    for name in NAMES:
        authority.party(name)
    authority.party("alice-2", file="impostor")
    return authority


@contextmanager
def hub(star: Authority, refusals: list[str] | None = None) -> Iterator[Hub]:
    pins = {name: star.load(name).fingerprint for name in NAMES}
    said = [] if refusals is None else refusals
    made = Hub(f"{HOST}:0", star.load("bob"), pins=pins, limits=QUICK, on_refused=said.append)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def calling(star: Authority, port: int, file: str) -> Iterator[DialEndpoint]:
    own: Credentials = star.load(file)
    client = DialEndpoint(f"{HOST}:{port}", own, peer="bob", limits=QUICK)
    try:
        yield client
    finally:
        client.close()


def talks(made: Hub, client: DialEndpoint, name: str) -> None:
    hers = client.connect(HANG)
    his = made.endpoints[name].connect(HANG)
    hers.send(name.encode())
    assert his.receive(HANG) == name.encode()
    his.send(b"yes")
    assert hers.receive(HANG) == b"yes"


def test_each_peer_has_an_endpoint_whatever_the_order_of_calls(star):
    with (
        hub(star) as made,
        calling(star, made.port, "alice-3") as third,
        calling(star, made.port, "alice-1") as first,
    ):
        assert list(made.endpoints) == list(NAMES)
        talks(made, third, "alice-3")
        talks(made, first, "alice-1")
        with refused(PeerAbsent, names="alice-2"):
            made.endpoints["alice-2"].connect(0)


def test_whoever_is_none_of_them_is_refused_and_named(star):
    refusals: list[str] = []
    with hub(star, refusals) as made, calling(star, made.port, "eve") as client:
        with refused(PeerRefused, names="bob"):
            client.connect(HANG)
        assert all(f"'{name}'" in refusals[-1] for name in ("eve", *NAMES))
        with refused(PeerAbsent, names="'eve'"):
            made.endpoints["alice-1"].connect(0)


def test_the_right_name_with_another_key_is_refused_and_the_right_key_is_not(star):
    refusals: list[str] = []
    agreed, other = star.load("alice-2").fingerprint, star.load("impostor").fingerprint
    with hub(star, refusals) as made:
        with (
            calling(star, made.port, "impostor") as client,
            refused(PeerRefused, names="bob"),
        ):
            client.connect(HANG)
        assert all(named in refusals[-1] for named in ("alice-2", other[:16], agreed[:16]))
        with refused(PeerAbsent, names=other[:16]):
            made.endpoints["alice-2"].connect(0)
        with refused(PeerAbsent) as caught:
            made.endpoints["alice-1"].connect(0)
        assert other[:16] not in caught.value.message
        with calling(star, made.port, "alice-2") as client:
            talks(made, client, "alice-2")


def test_a_second_process_of_one_waits_and_the_others_do_not(star, monkeypatch):
    refusals: list[str] = []
    with (
        hub(star, refusals) as made,
        calling(star, made.port, "alice-1") as first,
        calling(star, made.port, "alice-1") as second,
        calling(star, made.port, "alice-2") as other,
    ):
        hers, his = first.connect(HANG), made.endpoints["alice-1"].connect(HANG)
        monkeypatch.setattr(module_of(DialEndpoint), "_this_process", lambda: "another")
        waiting = in_thread(lambda: second.connect(HANG).send(b"second"))
        wait_until(lambda: refusals)
        assert "alice-1" in refusals[0]
        talks(made, other, "alice-2")
        hers.send(b"still here")
        assert his.receive(HANG) == b"still here"
        first.close()
        assert made.endpoints["alice-1"].connect(HANG).receive(HANG) == b"second"
        waiting.join(HANG)


def test_the_newest_call_of_a_peer_wins_and_leaves_the_others_alone(star):
    with (
        hub(star) as made,
        calling(star, made.port, "alice-1") as first,
        calling(star, made.port, "alice-2") as other,
        calling(star, made.port, "alice-1") as again,
    ):
        first.connect(HANG)
        older = made.endpoints["alice-1"].connect(HANG)
        hers = other.connect(HANG)
        his = made.endpoints["alice-2"].connect(HANG)
        talks(made, again, "alice-1")
        with refused(ConnectionLost, names="alice-1"):
            older.receive(HANG)
        hers.send(b"still here")
        assert his.receive(HANG) == b"still here"


def test_the_port_stays_open_until_the_last_endpoint_is_closed(star):
    with hub(star) as made, calling(star, made.port, "alice-3") as client:
        made.endpoints["alice-1"].close()
        made.endpoints["alice-2"].close()
        with refused(TransportError):
            made.endpoints["alice-1"].connect(HANG)
        talks(made, client, "alice-3")
        made.endpoints["alice-3"].close()
        Hub(f"{HOST}:{made.port}", star.load("bob"), pins={"alice-1": None}).close()


def shown(*names: bytes, pem: bytes = b"") -> dict[str, list[bytes]]:
    return {"peer_dns": [*names], "ssl_tls_version": [b"TLSv1.3"], "x509_pem_cert": [pem]}


def test_a_certificate_of_two_parties_is_nobodys():
    against = objection(shown(b"alice-1", b"alice-2"), NAMES)
    assert "'alice-1'" in against
    assert "'alice-2'" in against
    assert objection(shown(b"alice-1", b"elsewhere"), NAMES) == ""
