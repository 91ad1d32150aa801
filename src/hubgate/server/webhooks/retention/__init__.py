"""How long deliveries and events are kept."""
