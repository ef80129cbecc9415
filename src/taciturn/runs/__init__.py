"""What a folder of results holds: listed and exported; nothing is trained here."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
