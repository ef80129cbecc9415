"""Alice's programs: she holds features and is the curious party."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
