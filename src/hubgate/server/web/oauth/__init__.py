"""The OAuth 2.0 and OpenID Connect endpoints: parse the request, call `oauth/`, render the response."""
