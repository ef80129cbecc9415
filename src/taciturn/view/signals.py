"""The kinds of things a view may hold; an attack declares which it needs."""

from __future__ import annotations

from enum import Enum


class Signal(Enum):
    """Something Alice has or received; observations name theirs by these words."""

    FEATURES = "her own columns"
    WEIGHTS = "her own weights in clear"
    GRADIENTS = "the gradient of each batch in clear"
    RESIDUES = "a noisy residue of each row in clear"
    RESPONSE = "a randomised response about the rows of each batch"
