"""The storage API (Xet): tokens of a repo, and uploads and downloads of chunks with these tokens."""
