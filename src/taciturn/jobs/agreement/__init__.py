"""Signed agreements: what one side proposes, and each side reviews and signs."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
