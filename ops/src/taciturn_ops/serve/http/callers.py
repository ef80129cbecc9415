"""Callers that may request scores, by token or certificate, and their limits.

The file is TOML, for its owner's eyes only (mode 0600). It holds no token, only its SHA-256: a
token has 256 random bits, so that no salt or slow hash is needed.

::

    [callers.crm]
    token-sha256 = "9f86d08…"
    rows-per-day = 10000        # in place of the number in the party's file
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from taciturn.errors import ConfigError, FileError
from taciturn.files import read_toml, require_private, write_private
from taciturn.party.config import PartyConfig
from taciturn.rng import SystemEntropy
from taciturn.setting_syntax import Hint
from taciturn.settings.checked import Checked, PositiveInt
from taciturn.settings.schema import is_party_name
from taciturn_ops.serve.section import ServeSection

TOKEN_BYTES = 32


class _Line(Checked):
    token_sha256: Annotated[str | None, Field(pattern="^[0-9a-f]{64}$")] = None
    rows_per_day: PositiveInt | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """One who may ask, logged by name; ``rows_per_day`` None is the service's own limit."""

    name: str
    rows_per_day: int | None = None


@dataclass(frozen=True, slots=True)
class Callers:
    """All who may ask.

    ``by_name`` is None where there is no file, and a certificate is enough. ``digests`` are the
    SHA-256 of the tokens. ``peers`` are names whose certificates are no caller's: the peers', whom
    scores tell labels.
    """

    by_name: Mapping[str, Caller] | None = None
    digests: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    peers: frozenset[str] = frozenset()

    @classmethod
    def from_config(cls, config: PartyConfig) -> Callers:
        """Callers of a party's file; ConfigError if it names neither a list nor an authority."""
        serve = config.section(ServeSection)
        if serve.tokens is None and serve.callers_ca is None:
            raise ConfigError(
                "the file lists no callers",
                setting="tokens",
                hint=Hint(
                    "write {tokens} and run taciturn serve with {new_token}; or write {callers_ca}",
                    tokens="bob.callers.toml",
                ),
            )
        callers = cls() if serve.tokens is None else cls.read(config.path(serve.tokens))
        return replace(callers, peers=frozenset(map(str.lower, config.peers)))

    @classmethod
    def read(cls, path: Path) -> Callers:
        """Read a file of callers; FileError if others may read or change it."""
        lines = _lines(path)
        require_private(path, "who may ask for scores")
        names = {name: Caller(name, line.rows_per_day) for name, line in lines.items()}
        digests = {
            name: bytes.fromhex(line.token_sha256)
            for name, line in lines.items()
            if line.token_sha256 is not None
        }
        return cls(names, digests)

    def by_token(self, token: str) -> Caller | None:
        """Caller with this token, or None; the time does not depend on which."""
        shown, owner = hashlib.sha256(token.encode()).digest(), None
        for name, digest in self.digests.items():
            if hmac.compare_digest(shown, digest):
                owner = name
        return None if owner is None or self.by_name is None else self.by_name[owner]

    def by_certificate(self, names: Sequence[str]) -> Caller | None:
        """Caller with a certificate in these names, of which the first counts.

        None where there is none, one is a peer's, or the file does not list the first.
        """
        if not names or not self.peers.isdisjoint(names):
            return None
        return Caller(names[0]) if self.by_name is None else self.by_name.get(names[0])


def new_token(path: Path, name: str) -> str:
    """Add a caller to the file, or give one another token; the token returned is nowhere else."""
    if not is_party_name(name):
        raise ConfigError(
            f"{name!r} cannot be a caller's name",
            setting="new_token",
            hint="use lower-case letters, digits, hyphens and dots, as in crm or crm.example",
        )
    # Only where a token is given, not where the service starts.
    import tomlkit

    document = tomlkit.document()
    if path.exists():
        _lines(path)
        document = tomlkit.parse(path.read_text(encoding="utf-8"))
    token = SystemEntropy().token(TOKEN_BYTES).hex()
    digest = hashlib.sha256(token.encode()).hexdigest()
    line = document.setdefault("callers", {}).setdefault(name, {})
    line.pop("token_sha256", None)  # the other spelling of the same key
    line["token-sha256"] = digest
    write_private(path, tomlkit.dumps(document))
    return token


def _lines(path: Path) -> dict[str, _Line]:
    hint = Hint("taciturn serve with {new_token} makes it")
    values = read_toml(path, "file of callers", hint, FileError)
    callers = values.pop("callers", {})
    if values or not isinstance(callers, dict):
        raise ConfigError(
            f"unknown section {next(iter(values), 'callers')}",
            where=str(path),
            hint="each caller has a section: [callers.NAME]",
        )
    lines = {}
    for name, line in callers.items():
        try:
            lines[name] = _Line.from_mapping(line if isinstance(line, dict) else {"": line})
        except ConfigError as problem:
            raise ConfigError(
                problem.message,
                where=f"{path}, [callers.{name}]",
                hint="a caller has token-sha256 and rows-per-day",
            ) from None
    return lines
