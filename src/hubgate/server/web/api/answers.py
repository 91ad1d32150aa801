"""Refusals that many routes share, as their documentation names them."""

NO_TOKEN = {401: ("No token, or one that is no longer good.", None)}
