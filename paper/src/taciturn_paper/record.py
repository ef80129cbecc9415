"""What an experiment gives: a JSON object, kept in the cache and printed with ``--json``."""

from __future__ import annotations

from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]
