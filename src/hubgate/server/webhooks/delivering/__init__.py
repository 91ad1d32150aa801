"""From a delivery to an answer: claimed under a lease, sent, written down."""
