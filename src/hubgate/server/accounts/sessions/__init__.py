"""Sessions of signed-in browsers: server-side rows, found by the hash of the cookie, so they can be revoked at once."""
