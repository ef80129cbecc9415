"""Studies: one model for each combination of settings, trained in one session."""
