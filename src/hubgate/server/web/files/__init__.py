"""File downloads under `/resolve` and `/raw`, and the addresses for sending and fetching large files."""
