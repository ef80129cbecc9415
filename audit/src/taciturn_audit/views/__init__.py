"""All that one side has seen, and nothing else: Alice's view and Bob's."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
