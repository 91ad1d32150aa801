"""Webhooks on pages: one's own and an organization's, what they sent and what came back, and every kind of event."""
