"""Tests of the prediction."""
