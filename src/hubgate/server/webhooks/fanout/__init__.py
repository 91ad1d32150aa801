"""From an event to one delivery for each watcher."""
