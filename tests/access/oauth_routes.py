"""Rows of `test_routes.py`: the OAuth endpoints and the pages of signing in and out."""

ROWS = {
    "DELETE /oauth/register/{client_id}": "hub.public",
    "GET /oauth/authorize": "hub.public",
    "GET /oauth/device": "hub.public",
    "GET /oauth/device/done": "hub.public",
    "GET /oauth/explain/{id}": "hub.public",
    "GET /oauth/jwks": "hub.public",
    "GET /oauth/logout": "hub.public",
    "GET /oauth/register/{client_id}": "hub.public",
    "GET /oauth/userinfo": "account.identify",
    "POST /oauth/authorize": "hub.public",
    "POST /oauth/device": "hub.public",
    "POST /oauth/device/verify": "hub.public",
    "POST /oauth/introspect": "hub.public",
    "POST /oauth/logout": "hub.public",
    "POST /oauth/register": "hub.public",
    "POST /oauth/revoke": "hub.public",
    "POST /oauth/token": "hub.public",
    "POST /oauth/userinfo": "account.identify",
    "PUT /oauth/register/{client_id}": "hub.public",
}
