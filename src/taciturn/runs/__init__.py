"""What a folder of results holds: listed, set side by side, exported; nothing is trained here."""
