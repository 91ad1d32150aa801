"""OAuth apps: registered apps with their secrets, and apps known only by a metadata document."""
