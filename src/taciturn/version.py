"""The version of the product, and the one of its messages and files."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("taciturn")

# One number for messages between parties, journals, model files and transcripts. A change of any of
# them raises it, and whatever has another one is refused.
FORMAT_VERSION = 8
