"""Whether anything waits that should have left."""
