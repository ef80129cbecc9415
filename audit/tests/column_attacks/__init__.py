"""Attacks from Bob's seat."""
