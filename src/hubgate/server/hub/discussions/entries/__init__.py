"""The entries of discussions: comments with their reactions, commits, and changes of title and status."""
