"""Alignment: which rows all sides have, without revealing the other ids."""
