"""The HTTP requests of deliveries: built, signed, sent, and judged by the response."""
