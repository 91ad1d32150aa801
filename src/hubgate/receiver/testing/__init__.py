"""Test your handlers: signed sample deliveries of every kind, and a client that sends them to a receiver.

    from hubgate.receiver.testing import Deliverer

    def test_training_starts() -> None:
        with Deliverer(app) as deliver:
            response = deliver("repo.content.update", type="dataset")
        assert response.status == 200

Owns: samples, signatures, sending. Importing this package prevents `@webhook_endpoint` from starting a server at exit.
"""

from hubgate.receiver.endpoint import disable_start_at_exit
from hubgate.receiver.testing.deliverer import Deliverer, Response
from hubgate.receiver.testing.samples import KINDS, sample
from hubgate.receiver.testing.signing import Key, SignedDelivery, new_key, new_secret, signed_delivery

__all__ = [
    "KINDS",
    "Deliverer",
    "Key",
    "Response",
    "SignedDelivery",
    "new_key",
    "new_secret",
    "sample",
    "signed_delivery",
]

disable_start_at_exit()
