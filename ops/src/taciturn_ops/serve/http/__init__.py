"""Bob's HTTP service: the ASGI application, its callers, and its server."""
