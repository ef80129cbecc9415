"""Tests of the model report."""
