"""Tables, pictures and pages of the reproduction."""
