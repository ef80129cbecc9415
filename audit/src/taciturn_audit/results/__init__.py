"""Results of audits, as JSON records and as blocks."""
