"""The edge: every request passes it, and no handler runs before its permission was enforced here.

Owns: the outermost ASGI layer (`edge`), finding the caller behind a cookie or a token (`guard`), what each route
declares - an action and how its resource is found - and the judgement before its handler (`routes`), the route table
(`table`), and the OpenAPI document that follows from it.

Does not own: the rules themselves (`access`), the wire formats of requests and errors (`http`), or how a repo or an
organization is looked up (`web/repo_routes`, `web/named`: locators of their subjects).

Called by: `app`, which builds it; every package with routes declares them in its terms.
"""
