"""Who sends what: deliveries are taken for a while, and given back or lost."""
