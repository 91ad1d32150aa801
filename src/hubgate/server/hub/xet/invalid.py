"""The one error of the Xet formats."""

from hubgate.server.errors import BadRequest


class InvalidXet(BadRequest):
    """An upload that violates the Xet formats. The message is one sentence that is safe to show to its sender."""
