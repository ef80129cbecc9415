"""Settings: those of a run, and those that the parties agree on."""
