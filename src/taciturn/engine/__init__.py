"""Drives programs: in pairs, from a recording."""
