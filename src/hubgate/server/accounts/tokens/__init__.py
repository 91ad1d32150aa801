"""Personal tokens, for scripts and git. A token is shown once and stored as a hash."""
