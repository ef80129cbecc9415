"""Certificates and live links for the transport's tests."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from taciturn.transport.certs import Issuer, issue, make_issuer
from taciturn.transport.dial import DialEndpoint
from taciturn.transport.grpc_channel import GrpcChannel
from taciturn.transport.limits import Limits
from taciturn.transport.tls import Credentials, load_credentials
from tests.transport.serve_endpoint import ServeEndpoint
from tests.waiting import HANG

HOST = "127.0.0.1"
NOW = datetime.now(UTC)
QUICK = Limits(drain=2.0, attempts=100.0)


@dataclass(frozen=True)
class Authority:
    """An authority in a folder, and what it issues."""

    folder: Path
    issuer: Issuer

    @classmethod
    def make(cls, folder: Path) -> Authority:
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(folder, make_issuer("test", NOW - timedelta(days=9), NOW + timedelta(days=90)))
        (folder / "ca.pem").write_bytes(made.issuer.certificate.public_bytes(Encoding.PEM))
        return made

    def party(self, name: str, *, start: float = -1, days: float = 60, file: str = "") -> None:
        """Writes a certificate and key that are valid from and to so many days from now."""
        signed, key = issue(
            self.issuer, name, NOW + timedelta(days=start), NOW + timedelta(days=days)
        )
        (self.folder / f"{file or name}.pem").write_bytes(signed.public_bytes(Encoding.PEM))
        path = self.folder / f"{file or name}.key"
        path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        path.chmod(0o600)

    def load(self, file: str) -> Credentials:
        return load_credentials(
            self.folder / f"{file}.pem", self.folder / f"{file}.key", self.folder / "ca.pem"
        )

    def unchecked(self, file: str, *, ca: Path | None = None) -> Credentials:
        """Credentials that no check of ours has seen: what somebody hostile would use."""
        return Credentials(
            name=file,
            expires=NOW,
            warnings=(),
            certificate=(self.folder / f"{file}.pem").read_bytes(),
            key=(self.folder / f"{file}.key").read_bytes(),
            authority=(ca or self.folder / "ca.pem").read_bytes(),
        )


@dataclass(frozen=True)
class Pair:
    """Alice serves, Bob dials."""

    server: ServeEndpoint
    client: DialEndpoint
    alice: GrpcChannel
    bob: GrpcChannel


def serving(authority: Authority, limits: Limits = QUICK, **options) -> ServeEndpoint:
    return ServeEndpoint(f"{HOST}:0", authority.load("alice"), peer="bob", limits=limits, **options)


def dialling(authority: Authority, port: int, limits: Limits = QUICK) -> DialEndpoint:
    return DialEndpoint(f"{HOST}:{port}", authority.load("bob"), peer="alice", limits=limits)


@contextmanager
def connected(authority: Authority, limits: Limits = QUICK, **options) -> Iterator[Pair]:
    server = serving(authority, limits, **options)
    client = dialling(authority, server.port, limits)
    try:
        bob = client.connect(HANG)
        yield Pair(server, client, server.connect(HANG), bob)
    finally:
        client.close()
        server.close()


@contextmanager
def raw_wire(authority: Authority, port: int) -> Iterator[grpc.Channel]:
    """Bob's certificate in other hands, without any of our limits."""
    own = authority.load("bob")
    credentials = grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)
    options = [
        ("grpc.ssl_target_name_override", "alice"),
        ("grpc.max_send_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    with grpc.secure_channel(f"{HOST}:{port}", credentials, options) as wire:
        yield wire


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def memory() -> int:
    """Resident bytes of this process, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def tls_client(
    authority: Authority, port: int, *, version: ssl.TLSVersion, file: str | None = "bob"
) -> ssl.SSLSocket:
    """Python's own TLS, which can be told its version."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.folder / "ca.pem")
    if file is not None:
        context.load_cert_chain(authority.folder / f"{file}.pem", authority.folder / f"{file}.key")
    context.set_alpn_protocols(["h2"])
    context.maximum_version = version
    plain = socket.create_connection((HOST, port), timeout=HANG)
    try:
        return context.wrap_socket(plain, server_hostname="alice")
    except BaseException:
        plain.close()
        raise
