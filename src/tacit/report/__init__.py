"""Renders results; computes nothing."""
