"""Consent store: a party's disclosures to its partners, and their limits."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
