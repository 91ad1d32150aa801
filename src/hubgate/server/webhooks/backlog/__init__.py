"""Detection of overdue events and deliveries."""
