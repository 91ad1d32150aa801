"""The JSON API: parse, check permissions with `access`, call the use case, render."""
