"""Spaces that the hub runs: applications of users, such as receivers of webhooks.

Owns: the state of each Space and what its owner wants, secrets, variables and logs (`management.py`, `environment.py`,
`logs.py`), requests to its app (`hosting.py`), and the app itself: the runner's seam (`runner.py`), the runner
`bubblewrap/` and the proxy for outgoing requests (`proxy.py`). Does not own: the repo of a Space (`hub/repos`), the
routes (`web/`), and the way of a request from any process to the one that runs the app, which is that of tunnels
(`webhooks/tunnels`).

Every push to main, restart, and change of secrets or variables increments the Space's `version`, in the transaction of
that change. A process that runs Spaces compares it with the version that runs.
"""
