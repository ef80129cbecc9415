"""Reports of audits and comparisons."""
