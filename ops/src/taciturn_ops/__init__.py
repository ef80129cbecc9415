"""Operations: what an operator puts around a party, from its settings file to its monitoring."""
