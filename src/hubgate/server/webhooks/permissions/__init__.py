"""Which webhooks may report on a repo."""
