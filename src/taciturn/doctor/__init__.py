"""The doctor: what is right and wrong on this machine, and with a party's file."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
