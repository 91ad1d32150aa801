"""Receive webhooks: a decorated function is called when something changes on the hub.

Owns: the receiver's side of a delivery. Does not own: managing webhooks (`hubgate.Hub`), sending (the hub).
"""

import os
import warnings

from hubgate.receiver.endpoint import webhook_endpoint
from hubgate.receiver.payload import PayloadError, WebhookPayload
from hubgate.receiver.request import Request
from hubgate.receiver.server import WebhooksServer

__all__ = ["ExperimentalWarning", "PayloadError", "Request", "WebhookPayload", "WebhooksServer", "webhook_endpoint"]


class ExperimentalWarning(UserWarning):
    """The API is experimental and may change in any version."""


if os.environ.get("HUBGATE_NO_EXPERIMENTAL_WARNING", "").lower() not in ("1", "true", "yes", "on"):
    warnings.warn(
        "hubgate.receiver is experimental and may change in any version: pin the version of hubgate you use. "
        "HUBGATE_NO_EXPERIMENTAL_WARNING=1 silences this.",
        ExperimentalWarning,
        stacklevel=2,
    )
