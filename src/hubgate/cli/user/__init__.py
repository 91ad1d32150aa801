"""Commands for users, on top of the client library. They need no extra of the package."""
