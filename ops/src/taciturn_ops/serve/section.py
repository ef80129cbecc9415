"""``ServeSection``: the section [serve] of a party's file."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import model_validator

from taciturn.data.source import TableSource
from taciturn.errors import ConfigError
from taciturn.output_paths import PathUse
from taciturn.party.config import (
    PartyConfig,
    Seconds,
    address_parts,
    is_loopback,
    of_bob,
    require_connection,
    require_no_address,
)
from taciturn.setting_syntax import Hint
from taciturn.settings.checked import Checked, PositiveInt, setting


class ServeSection(Checked):
    """The scoring service: source of rows, callers, limits."""

    section: ClassVar = "serve"

    source: str | None = setting(example="customers.parquet", path=PathUse.READ)
    """File with the rows to score (default: the table of `[data]`).

    Of the kinds that a training reads; held in memory
    ([serve](../ops/docs/serve.md#scores-on-demand)).
    """
    query: str | None = setting(example="select * from customers")
    """SELECT statement that returns the rows to score, id column included.

    In place of `source`. Only the requested rows are read, by `[data] id`, which should have an
    index ([serve](../ops/docs/serve.md#scores-on-demand)).
    """
    connection: str | None = setting(example="env:CRM_DATABASE", path=PathUse.READ)
    """Database of `query` (default: `[data] connection`).

    Written as there.
    """
    aligned: str | None = setting(example="{role}.common.csv", path=PathUse.READ)
    """List of rows to serve, as written by `taciturn align`.

    Without it Bob asks Alice for any id that callers request, and she learns ids that she does not
    have.
    """
    address: str = of_bob("127.0.0.1:8080")
    """Bob: address (host:port) of the service for callers.

    Anything but this machine needs `tls-certificate` and `tls-key`.
    """
    tokens: str | None = of_bob(example="bob.callers.toml", path=PathUse.KEPT)
    """Bob: file of callers with the hashes of their tokens; mode 600.

    `taciturn serve` adds a caller ([serve](../ops/docs/serve.md#scores-on-demand)). Callers have a
    token, or a certificate of `callers-ca`.
    """
    callers_ca: str | None = of_bob(example="callers/ca.pem", path=PathUse.READ)
    """Bob: CA certificate of the callers (PEM); a caller's name is the one in its certificate.

    Not the CA of the link: anyone with a certificate of it may send requests.
    """
    tls_certificate: str | None = of_bob(example="callers/service.pem", path=PathUse.READ)
    """Bob: certificate of the service (PEM)."""
    tls_key: str | None = of_bob(example="callers/service.key", path=PathUse.READ)
    """Bob: private key of the service (PEM); mode 600."""
    rows_per_day: PositiveInt | None = setting(example=10_000)
    """Maximum number of rows per day (UTC): for each caller at Bob, for the peer at Alice.

    Counted across restarts. The file of callers may set another limit for one.
    """
    requests_per_row_per_day: PositiveInt | None = of_bob(example=10)
    """Bob: maximum number of requests per row and day, over all callers.

    Alice's limit per row is `scores-per-row`, over all time.
    """
    max_rows_per_request: PositiveInt = of_bob(4096)
    """Bob: maximum number of rows per request."""
    request_seconds: Seconds = of_bob(10.0)
    """Bob: timeout for a score, after which a request is refused."""
    max_queued_requests: PositiveInt = of_bob(256)
    """Bob: maximum number of waiting requests; more are refused at once."""

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
