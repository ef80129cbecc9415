"""A page for a browser on this machine: what runs, how far, how fast, and whether it still does.

``board`` holds what is shown, ``server`` serves it, ``page.html`` shows it, and ``address`` keeps
where it is. Nothing here knows how a training works: it is told by callbacks.
"""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
