"""The conversations, without a wire."""
