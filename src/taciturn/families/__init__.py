"""Families of generalised linear models: one file each, and a line in ``registry``."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
