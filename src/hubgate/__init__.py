"""The public client surface of hubgate, and nothing else.

The hub itself is `hubgate.server`, the webhook receiver `hubgate.receiver`; the three meet only on the wire.
"""

__version__ = "0.1.0.dev0"
