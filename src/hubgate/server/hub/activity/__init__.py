"""Recent activity of repos, as the home page shows it: events that the user may see, grouped by repo."""
