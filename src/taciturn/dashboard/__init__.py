"""A page for a browser on this machine: what runs, how far, how fast, and whether it still does.

Nothing here knows how a training works: callbacks tell it.
"""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
