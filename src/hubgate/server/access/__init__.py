"""Who is calling, and whether they may do a thing: one pure function over three frozen values.

Owns: the caller of a request (`caller`), what limits a credential carries (`identity`), what can be touched
(`resource`), the registry of actions with the role and scopes each asks for (`actions`), the judgement (`policy`) and
how a refusal is answered (`decision`).

Does not own: the rows of credentials (`accounts`, `oauth/tokens`), how a caller is found behind a cookie or a token
(`edge/guard`), the scopes' names and consent texts (`scopes`), or which address needs which action (its `Route`).

Called by: `edge`, which judges every request before its handler runs; pages and the API where an answer depends on what
else the caller may do; units of work that judge again. Nothing here is kept between requests.
"""
