"""Lists of repos: searched, sorted, page by page, and with nothing in them that the caller may not see."""
