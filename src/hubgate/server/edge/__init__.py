"""The edge: every request passes through it, and no handler runs before the caller's permission is checked here.

Owns: the outermost ASGI layer (`edge`), authentication by cookie or token (`guard`), route declarations and the
permission check before each handler (`routes`), the route table (`table`), and the OpenAPI document generated from it
(`openapi`).

Does not own: the access rules (`access`), the wire formats of requests and errors (`http`), or the lookup of repos and
organizations (the locators in `web/repo_routes` and `web/account_paths`).

Called by: `app`, which builds it, and every package that declares routes.
"""
