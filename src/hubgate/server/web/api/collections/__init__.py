"""`/api/collections`: collections and their items as JSON."""
