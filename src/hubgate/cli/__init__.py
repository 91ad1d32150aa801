"""The command line, a thin layer over the client library and the server's use cases."""
