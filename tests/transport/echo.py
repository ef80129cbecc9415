"""A party in a process of its own: sends back every frame, connection after connection.

``python -m tests.transport.echo serve FOLDER OWN PEER`` prints its port; ``dial`` takes one.
It stops when its standard input ends.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path

from taciturn.errors import ConnectionLost, MalformedFrame, PeerAbsent, PeerSilent
from taciturn.transport.channel import Channel, Endpoint
from taciturn.transport.dial import DialEndpoint
from taciturn.transport.limits import Limits
from taciturn.transport.tls import load_credentials
from tests.transport.serve_endpoint import ServeEndpoint

LIMITS = Limits(handshake=2.0, drain=2.0, attempts=50.0)


def echo(channel: Channel, stop: threading.Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(PeerSilent):
            channel.send(channel.receive(0.5))


def serve_all(endpoint: Endpoint, stop: threading.Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(ConnectionLost, MalformedFrame, PeerAbsent):
            channel = endpoint.connect(0.5)
            try:
                echo(channel, stop)
            finally:
                channel.close()


def main(how: str, folder: Path, own: str, peer: str, port: str = "0") -> None:
    credentials = load_credentials(folder / f"{own}.pem", folder / f"{own}.key", folder / "ca.pem")
    endpoint: ServeEndpoint | DialEndpoint
    if how == "serve":
        endpoint = ServeEndpoint(f"127.0.0.1:{port}", credentials, peer=peer, limits=LIMITS)
        print(endpoint.port, flush=True)
    else:
        endpoint = DialEndpoint(f"127.0.0.1:{port}", credentials, peer=peer, limits=LIMITS)
    stop = threading.Event()
    worker = threading.Thread(target=serve_all, args=(endpoint, stop))
    worker.start()
    sys.stdin.read()
    stop.set()
    worker.join()
    endpoint.close()


if __name__ == "__main__":
    how, folder, *others = sys.argv[1:]
    main(how, Path(folder), *others)
