"""Audit: what each side of a training could learn about the other's labels and columns."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
