"""Both parties in one process, on one table split by columns."""
