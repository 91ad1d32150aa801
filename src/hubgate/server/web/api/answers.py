"""Error responses that many routes share, for their documentation."""

NO_TOKEN = {401: ("No token, or an invalid one.", None)}
