"""Repos over HTTP, in the protocol of existing clients: `/api/models`, `/api/datasets`, `/api/spaces`."""
