"""Creating, reading, changing, enabling and disabling webhooks."""
