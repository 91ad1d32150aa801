"""Files as they are downloaded: `/resolve` and `/raw`, and the addresses large files are sent to and fetched from."""
