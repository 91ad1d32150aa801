"""Git's smart protocol over HTTP: addresses, request bodies and responses. Fetching and pushing itself is in `hub`."""
