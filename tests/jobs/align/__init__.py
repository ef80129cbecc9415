"""Tests of the alignment."""
