"""Fan-out: turns each event into one delivery for each webhook that watches the repo and may read it."""
