"""What Alice has seen, and nothing else."""
