"""Scores on demand; only Bob learns them, and gives them to callers over HTTP."""
