"""Bob's programs: he holds the labels and, where one side alone encrypts, the key."""
