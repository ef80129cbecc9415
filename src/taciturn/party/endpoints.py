"""A party's connection to its peers: a port that it opens, or an address that it dials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from taciturn.engine.callbacks import Announce
from taciturn.party.config import PartyConfig
from taciturn.party.credentials import credentials_of, require_own_name
from taciturn.party.log import Log, on_change
from taciturn.transport.address import check_address
from taciturn.transport.channel import Endpoints
from taciturn.transport.limits import Limits


@contextmanager
def open_endpoint(
    config: PartyConfig, announce: Announce, keys: Mapping[str, str] | None = None
) -> Iterator[Endpoints]:
    """The endpoint that a party's file describes, or one for each of several; closed at the end.

    ``announce`` is called with the certificate's warnings, the port, callers that were refused, and
    why nobody is connected while this side waits. ``keys`` are the fingerprints of the keys with
    which peers have signed the agreement, by their names: nobody else is talked to under these.
    """
    link, serves = config.link, config.link.listen is not None
    where = f"{config.where}, [link] {'listen' if serves else 'connect'}"
    check_address(link.listen or str(link.connect), where=where, any_port=serves)
    credentials = credentials_of(config)
    require_own_name(config, credentials)
    for warning in credentials.warnings:
        announce(f"warning: {warning}")
    pins = {**config.parties, **(keys or {})}
    log = Log.from_config(config, announce)
    limits = Limits(dead_after=link.keepalive_seconds)
    waits = on_change(lambda reason: log("waiting for the peer", reason=reason))
    # A party opens a port or dials, and loads what it does.
    if link.listen is not None:
        from taciturn.transport.serve import Hub

        hub = Hub(
            link.listen,
            credentials,
            pins={peer: pins.get(peer) for peer in config.peers},
            limits=limits,
            on_refused=on_change(lambda reason: log("refused a connection", reason=reason)),
            on_quiet=waits,
        )
        announce(f"listening on port {hub.port} for {config.peer}")
        try:
            yield hub.endpoints if hub.several else hub.endpoints[config.peer]
        finally:
            hub.close()
        return
    from taciturn.transport.dial import DialEndpoint
    from taciturn.transport.grpc_channel import KeyPin

    pin = None
    if config.peer in pins:
        files = config.path(link.certificate), config.path(link.key)
        pin = KeyPin(pins[config.peer], *files)
    endpoint = DialEndpoint(
        str(link.connect), credentials, peer=config.peer, pin=pin, limits=limits, on_failed=waits
    )
    announce(f"connecting to {config.peer} at {link.connect}")
    try:
        yield endpoint
    finally:
        endpoint.close()
