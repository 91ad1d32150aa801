"""The JSON API of accounts and organizations: parse, ask `access`, call the use case, render."""
