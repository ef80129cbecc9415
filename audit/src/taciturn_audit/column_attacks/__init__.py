"""Attacks on Alice's columns with Bob as the adversary: one file each, and a registry."""
