"""Links in mails that prove an address. One use each; only the hash of the secret is kept."""
