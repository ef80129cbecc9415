"""Tests of weight of evidence."""
