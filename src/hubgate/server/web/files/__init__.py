"""File downloads under `/resolve` and `/raw`, and the addresses for uploading and downloading large files."""
