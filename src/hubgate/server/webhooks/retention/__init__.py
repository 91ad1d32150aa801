"""Deletion of webhooks, and of old deliveries and events."""
