"""Commits over HTTP: parsing the request as it streams in, and writing the commit."""
