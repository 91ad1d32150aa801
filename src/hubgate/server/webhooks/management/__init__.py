"""Creating, changing and deleting webhooks."""
