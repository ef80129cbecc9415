"""Jobs of the parties: one folder per capability, and their common runner."""
