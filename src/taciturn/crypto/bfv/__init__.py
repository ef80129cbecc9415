"""Coefficient-packed BFV on Microsoft SEAL: parameters, layout, the door to SEAL, keys."""
