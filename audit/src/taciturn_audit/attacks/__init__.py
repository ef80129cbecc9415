"""Guesses of the labels from Alice's view alone."""
