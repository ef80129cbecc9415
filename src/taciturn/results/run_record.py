"""One run of a folder: what ``taciturn runs show --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from taciturn.results.manifest import Manifest
from taciturn.results.serialise import Result


@dataclass(frozen=True, slots=True)
class RunRecord(Result):
    """One run: what made it, and the record that its command gave."""

    manifest: Manifest
    result: Mapping[str, object] = field(repr=False)
