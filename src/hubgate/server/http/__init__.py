"""The HTTP base: requests, limits on bodies and headers, cookies, forms, CSRF checks and error responses.

Does not own the route table, the outermost ASGI layer or the OpenAPI document (`edge`), and knows nothing of accounts
or permissions. Handlers take a `HubRequest` and return a response.
"""
