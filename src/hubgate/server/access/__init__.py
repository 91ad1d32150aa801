"""Whether a caller may do a thing: one pure function over three frozen values.

Owns: what limits a credential carries (`identity`), what can be touched (`resource`), the registry of actions with
the role and scopes each asks for (`actions`), the judgement (`policy`) and how a refusal is answered (`decision`).

Does not own: reading rows, resolving a credential (`oauth/bearer`, `accounts`), the scopes' names and consent texts
(`scopes`), or which address needs which action (each subject's `http.py`).

Called by: every use case of `oauth`, `hub` and `webhooks`, and by the pages, once per thing touched. Nothing here is
kept between requests: rights are read anew each time.
"""
