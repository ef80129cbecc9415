"""Consent store: a party's disclosures to its partners, and their limits."""
