"""Families of generalised linear models: one file each, and a line in ``registry``."""
