"""What the operator sees of deliveries: backlog, rate, oldest waiting and failing hosts. It changes nothing."""
