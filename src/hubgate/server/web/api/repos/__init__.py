"""Repos over HTTP, as existing clients speak to them: `/api/models`, `/api/datasets`, `/api/spaces`."""
