"""Outbound HTTP to addresses that users supply: metadata documents of apps now, webhook receivers later.

One way out, so that one place decides where the hub may connect to: a name is resolved once, every address it has is
checked against our own table, and exactly the checked one is dialled, with the name kept for Host and TLS. No redirect
is followed, nothing is inflated, no proxy is taken from the environment. Owns the table, the connections and their
deadlines; what is sent and when is the caller's business.
"""
