"""Drives any conversation, whatever protects the labels: in pairs, from a recording."""
