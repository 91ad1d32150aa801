"""Changing a repo over HTTP: what a commit asks for, read as it streams in, and the commit itself."""
