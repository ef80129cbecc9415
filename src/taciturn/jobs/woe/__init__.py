"""Weight of evidence of Alice's columns, for Bob alone."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
