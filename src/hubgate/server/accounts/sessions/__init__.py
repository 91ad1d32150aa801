"""Signed-in browsers: server-side rows, found by the hash of a cookie. Ended here, they are ended."""
