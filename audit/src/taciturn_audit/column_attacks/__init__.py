"""Attacks on Alice's columns with Bob as the adversary: one file each, and a registry."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
