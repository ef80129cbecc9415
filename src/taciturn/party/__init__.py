"""One party of a real training: its settings, its tables, its programs, what it keeps."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
