"""The processes of a running hub: supervisor, web processes and background process.

`supervisor.py` is the parent process of `hubgate serve`, `web.py` answers requests, and `background.py` runs the
background loops. The processes share no memory, only the database, the data folder and the listening socket.
"""
