"""Who is not let in, and how that looks on both sides."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import ssl
import subprocess
import sys

import grpc
import pytest

from taciturn.errors import PeerAbsent, PeerRefused, TransportError
from taciturn.transport.corelog import explain
from taciturn.transport.dial import DialEndpoint
from taciturn.transport.grpc_channel import METHOD
from taciturn.transport.limits import Limits
from taciturn.transport.tls import Credentials
from tests.expected import refused
from tests.transport.parties import (
    HOST,
    QUICK,
    Authority,
    dialling,
    in_thread,
    raw_wire,
    serving,
    tls_client,
)
from tests.transport.serve_endpoint import ServeEndpoint
from tests.waiting import HANG

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"


@pytest.fixture(scope="module")
def refusals():
    return []


@pytest.fixture(scope="module")
def server(authority, refusals):
    made = serving(authority, on_refused=refusals.append)
    yield made
    made.close()


def still_serves(authority: Authority, server: ServeEndpoint) -> None:
    client = dialling(authority, server.port)
    try:
        bob = client.connect(HANG)
        bob.send(b"good")
        assert server.connect(HANG).receive(HANG) == b"good"
    finally:
        client.close()


def connects(port: int, credentials: Credentials, peer: str = "alice") -> None:
    client = DialEndpoint(f"{HOST}:{port}", credentials, peer=peer, limits=QUICK)
    try:
        client.connect(HANG)
    finally:
        client.close()


def test_the_right_name_of_the_same_authority_is_needed(authority, server, refusals):
    with refused(PeerRefused, names="alice"):
        connects(server.port, authority.load("eve"))
    assert "'eve'" in refusals[-1]
    assert "'bob'" in refusals[-1]
    with refused(PeerAbsent, names="'eve'"):
        server.connect(0.1)
    still_serves(authority, server)


def test_a_refused_caller_is_told_nothing(authority, server):
    own = authority.load("eve")
    credentials = grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)
    options = [("grpc.ssl_target_name_override", "alice")]
    for method in (METHOD, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"):
        with grpc.secure_channel(f"{HOST}:{server.port}", credentials, options) as wire:
            call = wire.stream_stream(method)(iter([b"x"]), timeout=HANG)
            with pytest.raises(grpc.RpcError):
                next(call)
            assert call.code() is grpc.StatusCode.PERMISSION_DENIED
            assert call.details() == "refused"
            assert not call.trailing_metadata()


@pytest.mark.parametrize("file", ["expired", "early", "a stranger's"])
@pytest.mark.sampled(2)
def test_a_caller_with_a_certificate_that_is_not_accepted(authority, stranger, server, file):
    own = authority.folder / "ca.pem"
    strange = stranger.unchecked("bob", ca=own)
    with refused(PeerRefused):
        connects(server.port, strange if file == "a stranger's" else authority.unchecked(file))
    still_serves(authority, server)


@pytest.mark.parametrize("wrong", ["authority", "name", "expired", "early"])
def test_a_server_that_is_not_accepted_is_named_at_once(authority, stranger, server, wrong):
    if wrong == "authority":
        with refused(PeerRefused):
            connects(server.port, authority.unchecked("bob", ca=stranger.folder / "ca.pem"))
    elif wrong == "name":
        with refused(PeerRefused, names="carol"):
            connects(server.port, authority.load("bob"), peer="carol")
    else:
        other = ServeEndpoint(f"{HOST}:0", authority.unchecked(wrong), peer="alice", limits=QUICK)
        with refused(PeerRefused):
            connects(other.port, authority.load("alice"), peer="bob")
        other.close()


def test_no_certificate_at_all(authority, server):
    with tls_client(authority, server.port, version=ssl.TLSVersion.TLSv1_3, file=None) as caller:
        # In TLS 1.3 the client is done before the server has looked.
        assert hears_nothing(caller)
    still_serves(authority, server)


def hears_nothing(caller: ssl.SSLSocket) -> bool:
    try:
        caller.sendall(PREFACE)
        return caller.recv(100) == b""
    except (ssl.SSLError, ConnectionError):
        return True


def test_tls_1_2_is_refused_and_1_3_is_not(authority, server):
    with tls_client(authority, server.port, version=ssl.TLSVersion.TLSv1_3) as caller:
        assert caller.version() == "TLSv1.3"
        caller.sendall(PREFACE)
        assert caller.recv(100), "the server answers with its settings"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        tls_client(authority, server.port, version=ssl.TLSVersion.TLSv1_2)
    still_serves(authority, server)


def test_without_tls_there_is_no_service(server):
    with grpc.insecure_channel(f"{HOST}:{server.port}") as wire:
        call = wire.stream_stream(METHOD)(iter([b"x"]), timeout=HANG)
        with pytest.raises(grpc.RpcError):
            next(call)
        assert call.code() is grpc.StatusCode.UNAVAILABLE


def test_a_peer_that_calls_too_often_is_slowed_down_and_not_shut_out(authority):
    """Forty calls in a row: four at once, and two more each second."""
    refusals: list[str] = []
    server = serving(authority, Limits(attempts=2.0, drain=0.5), on_refused=refusals.append)
    client = dialling(authority, server.port)
    try:
        with raw_wire(authority, server.port) as wire:
            for _ in range(40):
                call = wire.stream_stream(METHOD)(iter([b"x"]), timeout=HANG)
                with contextlib.suppress(grpc.RpcError, StopIteration):
                    next(call)
        assert refusals
        assert client.connect(HANG).alive
    finally:
        client.close()
        server.close()


def tls_server(authority: Authority, version: ssl.TLSVersion, protocol: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.folder / "alice.pem", authority.folder / "alice.key")
    context.maximum_version = version
    context.set_alpn_protocols([protocol])
    return context


@pytest.mark.parametrize(
    ("version", "protocol", "answer", "error", "named"),
    [
        (None, "", b"", PeerAbsent, "alice"),
        (None, "", b"HTTP/1.1 400 Bad Request\r\n\r\n", PeerAbsent, "TLS"),
        (ssl.TLSVersion.TLSv1_2, "h2", b"x", PeerAbsent, "1.3"),
        (ssl.TLSVersion.TLSv1_3, "http/1.1", b"x", PeerRefused, "gRPC"),
        (ssl.TLSVersion.TLSv1_3, "h2", b"x" * 99, PeerRefused, "gRPC"),
    ],
)
@pytest.mark.sampled(2)
def test_whoever_else_answers_is_named(authority, version, protocol, answer, error, named):
    def reply() -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = listener.accept()
                with caller, contextlib.suppress(OSError):
                    if version is None:
                        caller.recv(4096)
                        caller.sendall(answer)
                        continue
                    context = tls_server(authority, version, protocol)
                    with context.wrap_socket(caller, server_side=True) as secure:
                        secure.recv(100)
                        secure.sendall(answer)
                        secure.recv(100)

    with socket.create_server((HOST, 0)) as listener:
        in_thread(reply)
        client = dialling(authority, listener.getsockname()[1])
        with refused(error, names=named):
            # Long enough for a busy machine to have had the answer, which the error names.
            client.connect(4.0 if error is PeerAbsent else HANG)
        client.close()


def test_a_port_that_is_taken_is_named(authority, server):
    for address in (f"{HOST}:{server.port}", "192.0.2.7:9443"):
        with refused(TransportError, names=address):
            ServeEndpoint(address, authority.load("alice"), peer="bob")


def test_closing_ends_an_attempt_that_waits(authority):
    with socket.create_server((HOST, 0)) as silent:
        client = dialling(authority, silent.getsockname()[1])
        caught: list[Exception] = []

        def wait() -> None:
            try:
                client.connect(math.inf)
            except TransportError as problem:
                caught.append(problem)

        thread = in_thread(wait)
        caller, _ = silent.accept()
        client.close()
        thread.join(HANG)
        caller.close()
        assert not thread.is_alive()
        assert type(caught[0]) is TransportError


REASONS = """
import sys
from pathlib import Path
from taciturn.transport.corelog import handshake_reasons
from tests.transport.serve_endpoint import ServeEndpoint
from taciturn.transport.tls import load_credentials

folder = Path(sys.argv[1])
say = lambda reason: print(reason, flush=True)
own = load_credentials(folder / "alice.pem", folder / "alice.key", folder / "ca.pem")
with handshake_reasons(say):
    server = ServeEndpoint("127.0.0.1:0", own, peer="bob", on_refused=say)
    print(server.port, flush=True)
    print("python's own", file=sys.stderr)
    import os
    os.write(2, b"of a library\\n")
    sys.stdin.readline()
    server.close()
print("after", file=sys.stderr)
"""


def test_an_observer_that_fails_changes_nothing(authority):
    def fail(reason: str) -> None:
        raise ValueError("a secret")

    server = serving(authority, on_refused=fail)
    with refused(PeerRefused):
        connects(server.port, authority.load("eve"))
    server.close()


def test_the_serving_side_learns_the_reason_of_each_refusal(authority, stranger):
    process = subprocess.Popen(
        [sys.executable, "-c", REASONS, str(authority.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if not key.startswith("GRPC_")},
    )
    assert process.stdout is not None
    port = int(process.stdout.readline())
    said = []
    for credentials in (
        authority.unchecked("expired"),
        authority.unchecked("early"),
        stranger.unchecked("bob", ca=authority.folder / "ca.pem"),
        authority.unchecked("eve"),
    ):
        knock(port, credentials)
        said.append(process.stdout.readline().strip())
    with tls_client(authority, port, version=ssl.TLSVersion.TLSv1_3, file=None) as caller:
        hears_nothing(caller)
    said.append(process.stdout.readline().strip())
    with pytest.raises((ssl.SSLError, ConnectionError)):
        tls_client(authority, port, version=ssl.TLSVersion.TLSv1_2)
    said.append(process.stdout.readline().strip())
    out, err = process.communicate("stop\n", timeout=HANG)
    assert process.returncode == 0
    # Each has its own.
    assert len({*said}) == len(said) == 6
    assert "'eve'" in said[3]
    assert "1.3" in said[5]
    assert out == ""
    assert len(err.splitlines()) == 3


def knock(port: int, credentials: Credentials) -> None:
    own = grpc.ssl_channel_credentials(
        credentials.authority, credentials.key, credentials.certificate
    )
    options = [("grpc.ssl_target_name_override", "alice")]
    with grpc.secure_channel(f"{HOST}:{port}", own, options) as wire:
        call = wire.stream_stream(METHOD)(iter([b"x"]), timeout=HANG)
        with pytest.raises(grpc.RpcError):
            next(call)


EARLIER = """
import sys, threading
import grpc
from pathlib import Path
from tests.transport.serve_endpoint import ServeEndpoint
from taciturn.transport.tls import load_credentials

folder = Path(sys.argv[1])
own = load_credentials(folder / "alice.pem", folder / "alice.key", folder / "ca.pem")
server = ServeEndpoint("127.0.0.1:0", own, peer="bob", on_refused=lambda r: print(r, flush=True))
print(server.port, flush=True)
sys.stdin.readline()
server.close()
"""


def test_an_alert_is_about_a_certificate_only_where_it_says_so():
    line = b"I 1 ssl_transport_security.cc:1] Handshake failed with error SSL_ERROR_SSL: "
    about_it = {b"TLSV1_ALERT_UNKNOWN_CA", b"SSLV3_ALERT_CERTIFICATE_EXPIRED"}
    others = {b"SSLV3_ALERT_BAD_RECORD_MAC", b"TLSV1_ALERT_DECRYPT_ERROR", b"SOMETHING_NEW"}
    (certificate,) = {explain(line + error) for error in about_it}
    (handshake,) = {explain(line + error) for error in others}
    assert certificate != handshake


@pytest.mark.slow
def test_where_grpc_was_imported_before_us_the_stream_is_refused(authority):
    """The list of suites comes too late then. A TLS 1.2 caller gets no further than a refusal."""
    process = subprocess.Popen(
        [sys.executable, "-c", EARLIER, str(authority.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if not key.startswith("GRPC_")},
    )
    assert process.stdout is not None
    port = int(process.stdout.readline())
    with tls_client(authority, port, version=ssl.TLSVersion.TLSv1_2) as caller:
        assert caller.version() == "TLSv1.2"
        caller.sendall(PREFACE + headers(METHOD, port))
        assert process.stdout.readline().strip().endswith("1.3")
    process.communicate("stop\n", timeout=HANG)
    assert process.returncode == 0


def headers(path: str, port: int) -> bytes:
    """A HEADERS frame that opens stream 1, with literals only."""
    fields = {
        ":method": "POST",
        ":scheme": "https",
        ":path": path,
        ":authority": f"{HOST}:{port}",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    block = b"".join(
        b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )
    return len(block).to_bytes(3, "big") + b"\x01\x04" + (1).to_bytes(4, "big") + block


CHATTER = """
import os, sys
from taciturn.transport.corelog import handshake_reasons

line = b"I1116 06:00:57.650605   17260 chttp2_transport.cc:1403] ipv4:127.0.0.1: Got goaway [2]"
with handshake_reasons(print, for_good=True):
    os.write(2, line + b"\\n")
    os.write(2, line.replace(b"I1116", b"E1116") + b"\\n")
os.write(2, line + b"\\n")
print("python's own", file=sys.stderr, flush=True)
"""


def test_grpcs_own_chatter_does_not_reach_the_operator_not_even_after_the_end():
    """An error of the library's passes while the command lasts; Python's words always do."""
    done = subprocess.run(
        [sys.executable, "-c", CHATTER], capture_output=True, text=True, check=True, timeout=HANG
    )
    first, second = done.stderr.splitlines()
    assert first.startswith("E1116")
    assert not second.startswith("I1116")
