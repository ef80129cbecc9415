"""Signed agreements: what one side proposes, and each side reviews and signs."""
