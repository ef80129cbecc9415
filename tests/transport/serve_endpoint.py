"""A server for one named peer."""

from __future__ import annotations

from collections.abc import Callable

from taciturn.engine.callbacks import noop
from taciturn.transport.grpc_channel import GrpcChannel
from taciturn.transport.limits import Limits
from taciturn.transport.serve import Hub
from taciturn.transport.tls import Credentials


class ServeEndpoint:
    """Server for one named peer: a hub with one endpoint; see ``Hub``."""

    def __init__(
        self,
        listen: str,
        credentials: Credentials,
        *,
        peer: str,
        limits: Limits | None = None,
        on_refused: Callable[[str], None] = noop,
        on_quiet: Callable[[str], None] = noop,
    ) -> None:
        hub = Hub(
            listen,
            credentials,
            pins={peer: None},
            limits=limits,
            on_refused=on_refused,
            on_quiet=on_quiet,
        )
        self._endpoint, self.port = hub.endpoints[peer], hub.port

    def connect(self, timeout: float) -> GrpcChannel:
        """Wait for the peer."""
        return self._endpoint.connect(timeout)

    def close(self) -> None:
        """End the live channel, then the port."""
        self._endpoint.close()
