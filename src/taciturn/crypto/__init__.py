"""Integers and bytes: additively homomorphic schemes behind one interface (hazardous material)."""
