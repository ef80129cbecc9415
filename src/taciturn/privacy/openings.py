"""Openings: what a training, a study or a scoring opens to a party, as data."""

from __future__ import annotations

OPENING_ROWS = 8192
"""Number of training rows from which a ``mutual`` training opens a sum over all rows."""
