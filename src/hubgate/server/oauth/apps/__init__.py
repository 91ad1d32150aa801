"""Apps that people sign in to: registered ones with their secrets, and those known only by a metadata document."""
