"""Who is calling, and whether they may do a thing: one pure function over three frozen values.

Owns: finding the caller behind a cookie or a token (`guard`, `caller`), what limits a credential carries (`identity`),
what can be touched (`resource`), the registry of actions with the role and scopes each asks for (`actions`), the
judgement (`policy`) and how a refusal is answered (`decision`).

Does not own: the rows of credentials (`accounts`, `oauth/tokens`), the scopes' names and consent texts (`scopes`), or
which address needs which action (its `Route`).

Called by: `http/edge` before any handler, to find the caller; the pages and the API, once per thing touched. Nothing
here is kept between requests: rights are read anew each time.
"""
