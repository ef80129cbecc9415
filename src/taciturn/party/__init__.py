"""One party of a real training: its settings, its tables, its programs, what it keeps."""
