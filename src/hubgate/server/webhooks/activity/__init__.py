"""What became of deliveries, for the owner of a webhook; sending one again."""
