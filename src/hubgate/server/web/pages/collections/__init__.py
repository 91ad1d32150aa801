"""Pages about collections."""
