"""Deletion of old deliveries and events."""
