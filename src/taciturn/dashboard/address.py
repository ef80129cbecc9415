"""``Address``: where a page is served, and the file that keeps it, so that it stays the same.

The file is as secret as the page: who knows the token may read it. It is mode 600; one that others
may read, or that is no such file, is not used, and replaced.
"""

from __future__ import annotations

import base64
import json
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from taciturn.files import write_private
from taciturn.rng import SystemEntropy

HOST = "127.0.0.1"
TOKEN_BYTES = 32
_URL = re.compile(rf"http://{re.escape(HOST)}:(\d{{1,5}})/([A-Za-z0-9_-]{{43}})/")
_MOST_LETTERS = 1000


def new_token() -> str:
    """The secret part of an address: 32 random bytes, in 43 letters that a path may have."""
    return base64.urlsafe_b64encode(SystemEntropy().token(TOKEN_BYTES)).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a page is served; ``token`` is the secret part of the path."""

    port: int
    token: str = field(repr=False)

    @property
    def url(self) -> str:
        """What is typed into a browser.

        >>> Address(8080, "ab").url
        'http://127.0.0.1:8080/ab/'
        """
        return f"http://{HOST}:{self.port}/{self.token}/"

    @classmethod
    def kept(cls, path: Path) -> Address | None:
        """The address in a file; None where there is none that can be used."""
        try:
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                return None
            with path.open(encoding="ascii") as stream:
                values = json.loads(stream.read(_MOST_LETTERS))
        except (OSError, ValueError):
            return None
        url = values.get("address") if isinstance(values, dict) else None
        match = _URL.fullmatch(url) if isinstance(url, str) else None
        return None if match is None else cls(int(match[1]), match[2])

    def keep(self, path: Path) -> None:
        """Write the address to a file; OutputError if that fails."""
        write_private(path, json.dumps({"address": self.url}) + "\n", "address of the live page")
