"""Single-use links, sent by mail, that prove control of an address. Only the hash of the secret is stored."""
