"""Views of one side: exactly what Alice or Bob has seen."""
