"""What commands give, as frozen values; their JSON records, and those records read back."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
