"""Access to gated repos: requests of users, and the decisions of a repo's writers.

Owns: access requests with their states (pending, accepted, rejected) and the answers of the requester. An accepted
request lets its user read the files of a public gated repo (`access/policy.py`).

Does not own: the gate itself, a setting of the repo (`hub/repos/settings.py`), or the permission check.

Called by: `web/api/repos/access_requests.py` and `web/pages/repos/access.py`; `web/repo_routes.py` reads whether the
caller has access whenever a request names a gated repo. The home page and the account export list requests. Requests
record no events: webhooks would publish who asked.
"""
