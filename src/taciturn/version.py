"""The version of the product, and those of what it sends and keeps: one for each format.

A change of a format raises its version alone, and what has another version is refused: a protocol
that changes leaves the models and the consent stores of earlier releases readable.
"""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("taciturn")

PROTOCOL_VERSION = 8
"""Of the messages between parties, and of what they mean."""
JOURNAL_VERSION = 9
"""Of a session's journal."""
TRANSCRIPT_VERSION = 8
"""Of the file that ``--record`` writes."""
MODEL_VERSION = 7
"""Of a side's model file: that of release 0.3."""
CONSENT_VERSION = 3
"""Of the consent store; one of version 2 is converted."""
