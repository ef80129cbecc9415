"""The parties of a star by name, each with the fingerprint of its key.

Names alone would not do: whoever runs the authority of the certificates could make another
certificate of any name, and be all of the parties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator

FEWEST, MOST = 2, 16
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_FINGERPRINT = re.compile("[0-9a-f]{64}")


def is_party_name(name: str) -> bool:
    """Whether a party can be called so: a DNS name in lower case, and no address.

    >>> [is_party_name(name) for name in ("alice-1", "alice.example", "Alice", "127.0.0.1")]
    [True, True, False, False]
    """
    fits = len(name) <= 253 and _NAME.fullmatch(name) is not None
    return fits and not name.replace(".", "").isdigit()


def _parties(value: object) -> object:
    """The fingerprint of each name, from a table or from the pairs of an agreement's text."""
    if value is None:
        return value
    entries = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(entries, list | tuple) or not all(map(_is_pair, entries)):
        raise ValueError(
            "it is a table of names, each with a fingerprint; a name with dots stands in quotes"
        )
    _check(entries)
    return dict(entries)


def _is_pair(entry: object) -> bool:
    return (
        isinstance(entry, list | tuple)
        and len(entry) == 2
        and all(isinstance(part, str) for part in entry)
    )


def _check(entries: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> None:
    if not FEWEST <= len(entries) <= MOST:
        raise ValueError(
            f"it names {FEWEST} to {MOST} parties, not {len(entries)}; with one Alice leave it out"
        )
    for name, fingerprint in entries:
        if not is_party_name(name):
            raise ValueError(f"{name[:80]!r} cannot be a party's name")
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise ValueError(
                f"the fingerprint of {name} is 64 hexadecimal digits in lower case, "
                f"not {fingerprint[:80]!r}"
            )
    for column, kind in enumerate(("name", "fingerprint")):
        if len({entry[column] for entry in entries}) < len(entries):
            raise ValueError(f"two parties have the same {kind}")


Parties = Annotated[dict[str, str] | None, BeforeValidator(_parties)]
"""Names with fingerprints, in the order of the star; None with one Alice."""
