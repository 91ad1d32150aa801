"""A watch of a repo does not follow it to another owner, unless the watched name redirects there (O69)."""
