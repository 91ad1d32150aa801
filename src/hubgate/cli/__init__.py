"""The command line: thin, over the client library or over the server's use cases."""
