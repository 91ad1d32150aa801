"""Lists of repos: search, sorting and paging, restricted to repos that the caller may see."""
