"""What parties do together: one folder for each capability, and how all of them are run."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
