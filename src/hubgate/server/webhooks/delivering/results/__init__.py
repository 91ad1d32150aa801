"""What came of the tries, written down for many at once."""
