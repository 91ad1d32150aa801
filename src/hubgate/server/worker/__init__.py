"""The processes of a running hub: supervisor, web processes and background process.

`supervisor.py` is the parent process of `hubgate serve`, `web.py` answers requests, and `background.py` runs the
background loops. The processes share only the database and the listening socket.
"""
