"""The size of the products in a training: known to both sides from public numbers."""

from __future__ import annotations

from tacit.config import Agreement
from tacit.crypto.base import Capacity


def gradient_capacity(agreement: Agreement, magnitude_bits: int, rows: int) -> Capacity:
    """What ``X_A^T r`` needs: residues in (-1, 1), features below 2^magnitude_bits."""
    return Capacity(
        vector_bits=agreement.residue_bits,
        matrix_bits=agreement.feature_bits + magnitude_bits,
        terms=min(agreement.batch_size, rows),
    )
