"""``ServeSection``: the section [serve] of a party's file."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar, Self

from pydantic import model_validator

from taciturn.data.source import TableSource
from taciturn.errors import ConfigError
from taciturn.output_paths import PathUse
from taciturn.party.config import (
    PartyConfig,
    Seconds,
    address_parts,
    is_loopback,
    require_connection,
    require_no_address,
)
from taciturn.setting_syntax import Hint
from taciturn.settings.checked import Checked, PositiveInt, Setting

_serve = partial(Setting, scope="serve")
_callers = partial(_serve, owner="bob")


class ServeSection(Checked):
    """The scoring service: source of rows, callers, limits."""

    section: ClassVar = "serve"

    source: Annotated[
        str | None,
        _serve(
            "File with the rows to score (default: the table of `[data]`).",
            detail="Of the kinds that a training reads; held in memory "
            "([serve](../ops/docs/serve.md#scores-on-demand))",
            example="customers.parquet",
            path=PathUse.READ,
        ),
    ] = None
    query: Annotated[
        str | None,
        _serve(
            "SELECT statement that returns the rows to score, id column included.",
            detail="In place of `source`. Only the requested rows are read, by `[data] id`, which "
            "should have an index ([serve](../ops/docs/serve.md#scores-on-demand))",
            example="select * from customers",
        ),
    ] = None
    connection: Annotated[
        str | None,
        _serve(
            "Database of `query` (default: `[data] connection`).",
            detail="Written as there",
            example="env:CRM_DATABASE",
            path=PathUse.READ,
        ),
    ] = None
    aligned: Annotated[
        str | None,
        _serve(
            "List of rows to serve, as written by `taciturn align`.",
            detail="Without it Bob asks Alice for any id that callers request, and she learns ids "
            "that she does not have",
            example="{role}.common.csv",
            path=PathUse.READ,
        ),
    ] = None
    address: Annotated[
        str,
        _callers(
            "Bob: address (host:port) of the service for callers.",
            detail="Anything but this machine needs `tls-certificate` and `tls-key`",
        ),
    ] = "127.0.0.1:8080"
    tokens: Annotated[
        str | None,
        _callers(
            "Bob: file of callers with the hashes of their tokens; mode 600.",
            detail="`taciturn serve` adds a caller "
            "([serve](../ops/docs/serve.md#scores-on-demand)). Callers have a "
            "token, or a certificate of `callers-ca`",
            example="bob.callers.toml",
            path=PathUse.KEPT,
        ),
    ] = None
    callers_ca: Annotated[
        str | None,
        _callers(
            "Bob: CA certificate of the callers (PEM); a caller's name is the one in its "
            "certificate.",
            detail="Not the CA of the link: anyone with a certificate of it may send requests",
            example="callers/ca.pem",
            path=PathUse.READ,
        ),
    ] = None
    tls_certificate: Annotated[
        str | None,
        _callers(
            "Bob: certificate of the service (PEM).",
            example="callers/service.pem",
            path=PathUse.READ,
        ),
    ] = None
    tls_key: Annotated[
        str | None,
        _callers(
            "Bob: private key of the service (PEM); mode 600.",
            example="callers/service.key",
            path=PathUse.READ,
        ),
    ] = None
    rows_per_day: Annotated[
        PositiveInt | None,
        _serve(
            "Maximum number of rows per day (UTC): for each caller at Bob, for the peer at Alice.",
            detail="Counted across restarts. The file of callers may set another limit for one",
            example=10_000,
        ),
    ] = None
    requests_per_row_per_day: Annotated[
        PositiveInt | None,
        _callers(
            "Bob: maximum number of requests per row and day, over all callers.",
            detail="Alice's limit per row is `scores-per-row`, over all time",
            example=10,
        ),
    ] = None
    max_rows_per_request: Annotated[
        PositiveInt, _callers("Bob: maximum number of rows per request.")
    ] = 4096
    request_seconds: Annotated[
        Seconds, _callers("Bob: timeout for a score, after which a request is refused.")
    ] = 10.0
    max_queued_requests: Annotated[
        PositiveInt, _callers("Bob: maximum number of waiting requests; more are refused at once.")
    ] = 256

    @model_validator(mode="after")
    def _whole(self) -> Self:
        require_no_address("source", self.source)
        if self.source is not None and self.query is not None:
            raise ConfigError(
                "the rows to score are a file or a query, not both",
                setting="query",
                hint=Hint("leave {source} or {query} out"),
            )
        require_connection(None, self.connection)
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ConfigError(
                "a certificate and its key go together",
                setting="tls_key" if self.tls_key is None else "tls_certificate",
                hint=Hint("write both {tls_certificate} and {tls_key}, or neither"),
            )
        if self.callers_ca is not None and self.tls_certificate is None:
            raise ConfigError(
                "callers show certificates to a service that has one itself",
                setting="callers_ca",
                hint=Hint("write {tls_certificate} and {tls_key} too"),
            )
        return self

    @property
    def is_local(self) -> bool:
        """Whether callers reach the service from this machine alone."""
        return is_loopback(address_parts(f"http://{self.address}")[1])

    def table(self, config: PartyConfig) -> TableSource:
        """The rows that the service scores."""
        if self.query is None and self.source is None:
            return config.table()
        connection = self.connection or config.data.connection
        return config.source(self.source and config.path(self.source), self.query, connection)
