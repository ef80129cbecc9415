"""Checks of a machine and of a party's file; changes nothing."""
