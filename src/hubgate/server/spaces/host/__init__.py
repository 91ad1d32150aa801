"""The process that runs Spaces: builds and starts apps, forwards requests to them, lets them sleep and restarts them.

Several such processes may run, on several machines. Each Space is leased to one of them (`leases.py`): its row has the
id of the process, and every statement that reports about the Space requires that id. `process.py` leases Spaces and
hands them new states and requests; `hosted_space.py` has the life of one Space. Does not own: what owners want
(`management.py`), how code is isolated (`runner.py`).
"""
