"""Outgoing HTTP requests to addresses that users supply: metadata documents of apps and webhook receivers.

All such requests use this package, so that one place decides where the hub may connect: a name is resolved once, each
of its addresses is checked against a table, and the hub dials exactly the checked address, with the name in Host and
TLS. Redirects are not followed, responses are not decompressed, and proxy settings of the environment are ignored.
Owns the table, the connections and their deadlines. Callers decide what to send and when.
"""
