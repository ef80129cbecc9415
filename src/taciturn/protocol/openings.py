"""Openings of an agreement: which rows of the table of openings a training opens, and how often."""

from __future__ import annotations

from taciturn.privacy.openings import SCORE_NOISE

SCORE_NOISE_TEXT = f"practically exact (noise of up to {SCORE_NOISE.half_width:.5f})"
"""Precision of the scores that Bob receives after training."""
