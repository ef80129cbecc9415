"""The version, in one place."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("tacit")
