"""List and export the results of a folder; trains nothing."""
