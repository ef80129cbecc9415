"""Privacy mechanisms: what Bob may release, and its price."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
