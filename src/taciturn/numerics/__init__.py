"""Arrays in, arrays out: no state and no randomness."""
