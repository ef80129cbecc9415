"""The address of an MLflow server or store: which are accepted, and how they are shown."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from taciturn.errors import ConfigError
from taciturn.faces import Hint
from taciturn.results.manifest import without_credentials

_USE = "use https://HOST, http://127.0.0.1:5000, sqlite:///FILE or a folder"


@dataclass(frozen=True, slots=True)
class TrackingUri:
    """Where runs are exported to; ``shown`` has no name and no password of the address."""

    uri: str
    remote: bool
    files: bool

    @property
    def shown(self) -> str:
        """The address for a person."""
        return without_credentials(self.uri)

    def __repr__(self) -> str:
        return f"TrackingUri({self.shown})"

    @classmethod
    def of(cls, text: str, *, allow_http: bool = False) -> TrackingUri:
        """Check an address; ConfigError if runs cannot be sent there, or not safely.

        ``allow_http`` accepts plain http to a machine that is not this one.
        """
        try:
            parts = urlsplit(text)
            host = parts.hostname or ""
        except ValueError:
            raise _unusable(text) from None
        if parts.scheme in ("http", "https"):
            _require_host(text, parts, host, allow_http)
            return cls(text, remote=True, files=False)
        if parts.scheme == "sqlite":
            return cls(text, remote=False, files=False)
        if text and (parts.scheme in ("", "file") or "://" not in text):
            return cls(text, remote=False, files=True)
        raise _unusable(text)


def _require_host(text: str, parts: SplitResult, host: str, allow_http: bool) -> None:
    if not host:
        raise _unusable(text)
    if parts.password or parts.username:
        raise ConfigError(
            "an address with a name or a password in it ends up in the shell's history",
            setting="mlflow",
            hint="set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or "
            "MLFLOW_TRACKING_TOKEN, instead",
        )
    if parts.scheme == "http" and not is_loopback(host) and not allow_http:
        raise ConfigError(
            "plain http would send the runs readable by whoever is on the way",
            setting="mlflow",
            hint=Hint("use https, or add {allow_http} where the network is your own"),
        )


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its address or as ``localhost``.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("mlflow.example")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unusable(text: str) -> ConfigError:
    return ConfigError(
        f"runs cannot be exported to {without_credentials(text) or 'nowhere'}",
        setting="mlflow",
        hint=_USE,
    )
