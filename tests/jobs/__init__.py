"""Tests of the jobs: what parties do together."""
