"""What a user allows an app, for good until changed: scopes and organizations. Tokens are cut down to it."""
