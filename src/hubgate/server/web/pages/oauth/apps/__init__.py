"""A developer's own apps and those of an organization: one set of pages for both owners."""
