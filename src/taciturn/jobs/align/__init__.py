"""Alignment: which rows all sides have, without revealing the other ids."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
