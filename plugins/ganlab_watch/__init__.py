"""Shows the runs that train now."""
