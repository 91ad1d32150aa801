"""Who may know of a repo."""
