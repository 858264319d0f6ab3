"""Who does the summing."""
