"""The version and the former name, in one place."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("taciturn")

# What the product was called before version 0.2. Files that it wrote under that name are refused by
# it: their magics, digests and keys are others.
FORMER_NAME = "tacit"
