"""Making, changing and ending webhooks."""
