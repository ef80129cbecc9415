"""Results of commands as frozen values, with their JSON records."""
