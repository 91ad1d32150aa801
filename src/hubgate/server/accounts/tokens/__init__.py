"""Personal tokens: what scripts and git present. Shown once, stored as a hash."""
