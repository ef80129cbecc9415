"""Audit: what each side of a training could learn about the other's labels and columns."""
