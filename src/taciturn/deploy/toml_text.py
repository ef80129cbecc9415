"""Values as a TOML document: what ``tomllib`` reads back is the same, number by number.

``taciturn.faces.toml_value`` spells values for a person, and rounds them; this spells them exactly.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def document(values: Mapping[str, object]) -> str:
    """A whole document: what stands at the top first, then a section for each table.

    >>> print(document({"format": 1, "side": {"bob": {"columns": ["age"], "share": 0.1}}}), end="")
    format = 1
    <BLANKLINE>
    [side.bob]
    columns = ["age"]
    share = 0.1
    """
    return "\n".join("".join(f"{line}\n" for line in part) for part in _parts("", values))


def _parts(name: str, table: Mapping[str, object]) -> Iterator[list[str]]:
    own = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"{bare(key)} = {spelled(value)}" for key, value in own.items()]
    # A table of tables needs no heading of its own; one that is empty does.
    if name and (lines or not inner):
        lines.insert(0, f"[{name}]")
    if lines:
        yield lines
    for key, value in inner.items():
        yield from _parts(f"{name}.{bare(key)}".lstrip("."), value)


def bare(key: str) -> str:
    """A key as a document holds it: in quotes where it has to be."""
    return key if key and _BARE.issuperset(key) else spelled(key)


def spelled(value: object) -> str:
    r"""One value, exactly; ValueError where TOML has no spelling for it.

    >>> spelled(0.1 + 0.2), spelled(True), spelled("a\x7f"), spelled({"a b": [1, None or 2]})
    ('0.30000000000000004', 'true', '"a\\u007f"', '{ "a b" = [1, 2] }')
    """
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            # JSON leaves one sign as it is that TOML does not allow.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case list() | tuple():
            return f"[{', '.join(map(spelled, value))}]"
        case Mapping():
            pairs = (f"{bare(key)} = {spelled(part)}" for key, part in value.items())
            return f"{{ {', '.join(pairs)} }}"
    raise ValueError(f"TOML has no spelling for {type(value).__name__}")
