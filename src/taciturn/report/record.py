"""What a renderer is given: a command's JSON object."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
