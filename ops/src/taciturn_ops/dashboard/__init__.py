"""A page for a browser on this machine: what runs, how far, how fast, and whether it still does.

Nothing here knows how a training works: callbacks tell it.
"""
