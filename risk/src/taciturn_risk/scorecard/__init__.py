"""The model report and scorecard: figures, coefficients and points, as far as a side may see."""
