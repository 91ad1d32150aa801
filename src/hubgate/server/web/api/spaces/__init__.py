"""Spaces that run, as existing clients call them: `/api/spaces/{namespace}/{repo}/runtime`, settings and logs."""
