"""The doctor: what is right and wrong on this machine, and with a party's file."""
