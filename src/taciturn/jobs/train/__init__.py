"""Training: one model of all sides' columns, and the labels stay with Bob."""
