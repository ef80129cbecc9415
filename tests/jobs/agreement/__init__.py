"""Tests of signed agreements."""
