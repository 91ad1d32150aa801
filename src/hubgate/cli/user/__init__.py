"""The user's commands, over the client library: they work wherever `pip install hubgate` does, without the server."""
