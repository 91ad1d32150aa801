"""The operator's pages. The operator flag opens these and nothing else; no token opens them."""
