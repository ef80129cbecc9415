"""Bob's programs: he holds the labels and the key."""
