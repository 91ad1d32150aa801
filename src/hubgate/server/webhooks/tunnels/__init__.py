"""Tunnels: temporary links to receivers on machines that the hub cannot reach.

Owns: links and their expiry, and the path of a request to the receiver and back. Does not own: who may open a link
(`web/api/tunnels.py`), the link's routes (`web/tunnel_links.py`), the URLs of links (`egress/tunnel_links.py`).

The receiver's program is connected to one web process by a WebSocket. Requests to the link, and deliveries of this hub,
may begin in any process (`forwarding.py`): they are stored, and the process with the WebSocket sends them
(`sockets.py`) and stores the answer. Signals between the processes make this fast; both sides also poll.
"""
