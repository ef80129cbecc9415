"""A party's way to its peer: a port that it opens, or an address that it dials."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from taciturn.deploy.config import PartyConfig
from taciturn.deploy.log import Log, on_change
from taciturn.deploy.transport.limits import Limits
from taciturn.deploy.transport.tls import load_credentials
from taciturn.engine.callbacks import Announce
from taciturn.engine.channel import Endpoint


@contextmanager
def way_to_peer(config: PartyConfig, announce: Announce) -> Iterator[Endpoint]:
    """The endpoint that a party's file describes; closed at the end.

    Args:
        config: The party's settings.
        announce: Told of the certificate's warnings and the port; and, as the log is, of callers
            that were refused, or why nobody is connected while this side waits.

    Raises:
        CertificateError: The party's own certificate, key or authority is not fit for use.
        ConfigError: An address or a name is not usable.
        TransportError: The port cannot be opened.
    """
    link = config.link
    credentials = load_credentials(
        config.path(link.certificate), config.path(link.key), config.path(link.ca)
    )
    for warning in credentials.warnings:
        announce(f"warning: {warning}")
    limits = Limits(dead_after=link.dead_seconds)
    log = Log.of(config, announce)
    waits = on_change(lambda reason: log("waiting for the peer", reason=reason))
    endpoint: Endpoint
    # A party opens a port or dials, and loads what it does.
    if link.listen is not None:
        from taciturn.deploy.transport.serve import ServeEndpoint

        endpoint = served = ServeEndpoint(
            link.listen,
            credentials,
            peer=config.peer,
            limits=limits,
            on_refused=on_change(lambda reason: log("refused a connection", reason=reason)),
            on_quiet=waits,
        )
        announce(f"listening on port {served.port} for {config.peer}")
    else:
        from taciturn.deploy.transport.dial import DialEndpoint

        endpoint = DialEndpoint(
            str(link.connect),
            credentials,
            peer=config.peer,
            limits=limits,
            on_failed=waits,
        )
        announce(f"connecting to {config.peer} at {link.connect}")
    try:
        yield endpoint
    finally:
        endpoint.close()
