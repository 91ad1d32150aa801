"""Sending deliveries: the queue in memory, the check before sending, the results, and the loops around them."""
