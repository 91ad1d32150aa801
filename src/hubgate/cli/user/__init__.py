"""Commands for users, on top of the client library. They need `pip install hubgate`, but not the server."""
