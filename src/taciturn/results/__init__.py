"""Results of commands as frozen values, with their JSON records."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
