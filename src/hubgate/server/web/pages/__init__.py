"""The hub's pages: one file per page or small group of pages."""
