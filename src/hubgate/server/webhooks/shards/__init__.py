"""Which process sends for which webhooks: shards, their owners, and wake-ups for them."""
