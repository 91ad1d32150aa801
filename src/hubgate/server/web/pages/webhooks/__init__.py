"""Pages about webhooks of a user or an organization: settings, deliveries with their responses, kinds of events."""
