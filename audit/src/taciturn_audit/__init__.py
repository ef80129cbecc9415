"""Runs the attacks and lets each guess meet the truth in one place."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
