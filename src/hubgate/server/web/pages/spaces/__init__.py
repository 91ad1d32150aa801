"""Pages about the app of a Space."""
