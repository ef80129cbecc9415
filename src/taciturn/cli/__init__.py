"""Parses, calls the front door, prints."""
