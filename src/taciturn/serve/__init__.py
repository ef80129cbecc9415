"""Scores over HTTP at Bob's side: an ASGI application, its callers, its server."""
