"""Access control: whether an identity may perform an action on a resource, decided by one pure function.

Owns: the caller of a request (`caller`), the limits of its credential (`identity`), resources (`resource`), the
registry of actions with the role and scopes that each requires (`actions`), the decision (`policy`) and its error
response (`decision`).

Does not own: the rows of credentials (`accounts`, `oauth/tokens`), authentication by cookie or token (`edge/guard`),
the names and consent texts of scopes (`scopes`), or which action a route requires (its `Route`).

Called by: `edge`, which checks every request before its handler runs; pages and the API where a response depends on the
caller's other permissions; transactions that check again. Nothing here is stored between requests.
"""
