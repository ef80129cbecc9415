"""Runs the attacks and lets each guess meet the truth in one place."""
