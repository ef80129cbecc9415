"""Reproduction of the paper's tables, figures and statements, and the benchmarks."""
