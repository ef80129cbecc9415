"""Scores on demand between two machines: what each side does beside the programs."""
