"""Single-use links in mails that prove an address. Only the hash of the secret is stored."""
