"""Joint prediction of new rows; only Bob learns the scores."""
