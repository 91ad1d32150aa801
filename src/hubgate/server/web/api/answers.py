"""Error responses that many routes share, for their documentation."""

NO_TOKEN = {401: ("No token, or one that is no longer good.", None)}
