"""Consents: the scopes and organizations a user allows an app, until changed. A consent limits the app's tokens."""
