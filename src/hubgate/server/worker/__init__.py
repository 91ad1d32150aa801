"""The processes of a running hub: what they are, how they are kept alive, what they do in the background.

`supervise.py` is the parent that `hubgate serve` becomes; `web.py` answers requests; `deliver.py` runs the background
loops. They share nothing but the database and the listening socket.
"""
