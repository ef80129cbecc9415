"""The paper's tables, figures and statements beside ours, and the benchmarks."""
