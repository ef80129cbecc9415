"""The live page: what it shows, who may see it, and how it looks."""
