"""The gateway to the operator's own services for inference and jobs: the outgoing half of a forwarded request.

Owns: the addresses of the services (`upstream`), which headers pass in each direction (`headers`), the signed identity
that replaces the caller's token (`signed_identity`), and the connection that streams both ways (`connection`).

Does not own: permissions, routes and the responses to clients (`web/gateway`), the signing keys (`oauth/keys`), or
requests to addresses that users supply (`egress`). The operator chose the services of the gateway, so they may have
private addresses, and no proxy is used.

Called by: `web/gateway`.
"""
