"""What a party has given to its partners, counted in one file, and the limits on it."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
