"""Which webhooks may report on a repo, and the grants of the apps that manage webhooks."""
