"""What commands give, as frozen values; their JSON records, and those records read back."""
