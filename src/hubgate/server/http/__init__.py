"""The HTTP base: everything a request meets before its handler and after it.

Owns the route table (and the OpenAPI document made from it), the outermost ASGI layer with its limits and headers,
forms and their CSRF check, and how an error looks on each surface. It knows nothing of accounts or rights: `app.py`
gives it a guard that does. Handlers take a `HubRequest` and return a Starlette response.
"""
