"""Tables with row ids, their sources, the paper's datasets, preparation and column splits."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
