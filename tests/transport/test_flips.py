"""One bit is flipped on the way while TLS shakes hands: the session comes about all the same.

Alice serves in a process of her own; a relay on the loopback flips one bit of the first connection.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from taciturn.errors import PeerRefused
from taciturn.transport.dial import DialEndpoint
from tests.expected import refused
from tests.transport.parties import HOST, QUICK, Authority
from tests.transport.relay import TO_CLIENT, TO_SERVER, Relay, flips
from tests.transport.test_processes import echoing
from tests.waiting import HANG

# A flight's first record has kinds, versions and lengths here.
HEADS = (0, 1, 2, 3, 5, 6, 9, 11)
SPREAD = 12


@pytest.fixture(scope="module")
def server(authority) -> Iterator[int]:
    """The port of Alice, who serves Bob."""
    with echoing(authority, "serve", "alice", "bob") as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


def meets(authority: Authority, relay: Relay, file: str = "bob") -> list[str]:
    """A frame there and back through the relay; what was said of attempts that failed."""
    said: list[str] = []
    own = authority.load(file)
    address = f"{HOST}:{relay.port}"
    client = DialEndpoint(address, own, peer="alice", limits=QUICK, on_failed=said.append)
    with relay:
        try:
            channel = client.connect(HANG)
            channel.send(b"are you there")
            assert channel.receive(HANG) == b"are you there"
        finally:
            client.close()
    return said


@pytest.fixture(scope="module")
def flights(authority, server) -> tuple[int, int]:
    """How many bytes go each way until a frame is there and back."""
    relay = Relay(server)
    assert meets(authority, relay) == []
    to_server, to_client = relay.passed
    assert relay.calls == 1
    assert min(to_server, to_client) > 1500
    return to_server, to_client


def spread(length: int, count: int) -> list[int]:
    """Bits over the whole length, another one in each byte."""
    places = [*HEADS, *range(HEADS[-1] + 1, length, length // count)]
    return [8 * place + place % 8 for place in places]


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("way", [TO_SERVER, TO_CLIENT])
def test_one_flipped_bit_does_not_end_a_session(authority, server, flights, way):
    # A quarter of what crosses comes after the handshake: the server's settings, the frame.
    bits = spread(flights[way] * 3 // 4, SPREAD)
    failed = 0
    for bit in bits:
        relay = Relay(server, flips(bit), way=way)
        said = meets(authority, relay)
        assert relay.damaged == 1, bit
        failed += relay.calls > 1
        assert not [words for words in said if "certificate" in words or "error:" in words], bit
    # Nearly every one costs a connection: the bits do lie within the handshake.
    assert failed >= len(bits) - 4


@pytest.mark.slow  # a second or two, and others show the same on less
def test_a_line_that_damages_many_handshakes_is_waited_for(authority, server):
    """More of them in a row than hang-ups count as a refusal."""
    relay = Relay(server, flips(8 * 5), way=TO_CLIENT, connections=5)
    said = meets(authority, relay)
    assert relay.calls == 6
    assert len(said) == 1
    assert "TLS" in said[0]


def test_an_identity_is_refused_on_a_damaging_line_as_well(authority, server):
    relay = Relay(server, flips(8 * 5), way=TO_CLIENT)
    with refused(PeerRefused, names="alice"):
        meets(authority, relay, "eve")
    assert relay.calls == 2
