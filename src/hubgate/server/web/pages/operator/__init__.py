"""The operator's pages. The operator flag grants access to these pages only, and no token does."""
