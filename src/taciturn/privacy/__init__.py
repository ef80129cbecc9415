"""What may leave Bob, and its price."""
