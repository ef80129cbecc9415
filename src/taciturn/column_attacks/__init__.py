"""Attacks on Alice's columns from Bob's seat: one file each, a registry, and what they share."""
