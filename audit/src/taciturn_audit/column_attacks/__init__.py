"""Attacks on Alice's columns from Bob's seat: one file each, a registry, and what they share."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
