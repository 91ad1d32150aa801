"""Git's smart protocol over HTTP: addresses, bodies and answers. What a fetch or a push does is `hub`'s."""
