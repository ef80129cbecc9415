"""Coefficient-packed BFV on Microsoft SEAL: parameters, layout, the door to SEAL, keys."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
