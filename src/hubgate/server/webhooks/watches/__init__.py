"""The accounts and repos that webhooks watch."""
