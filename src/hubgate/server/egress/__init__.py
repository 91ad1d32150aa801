"""Outgoing HTTP requests to addresses that users supply: metadata documents of apps, and webhook receivers.

All such requests use this package, so that one place decides where the hub may connect: a name is resolved once, each
of its addresses is checked against the networks in `addresses` and against the hub's own addresses, and the hub dials
exactly the checked address, with the name in Host and TLS. For ten seconds after the check, requests may use idle
connections without resolving the name again. Requests use `HUBGATE_EGRESS_PROXY` if it is set, and never the proxy
variables of the environment. Redirects are not followed, and responses are not decompressed.

Owns these checks, the connections, their deadlines, and the limit of requests in flight to one address. Callers decide
what to send and when.
"""
