"""Weight of evidence of Alice's columns, for Bob alone."""
