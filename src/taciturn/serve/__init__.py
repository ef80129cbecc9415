"""Scores over HTTP at Bob's side: an ASGI application, its callers, its server."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
