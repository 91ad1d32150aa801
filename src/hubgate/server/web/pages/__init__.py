"""One file per page or small group of pages."""
