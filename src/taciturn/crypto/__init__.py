"""Integers and bytes: additively homomorphic schemes behind one interface (hazardous material)."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
