"""Jobs of the parties: one folder per capability, and their common runner."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
