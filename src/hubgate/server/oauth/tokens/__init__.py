"""What apps hold: codes, access tokens, refresh tokens. Stored as hashes; rights are read afresh at every use."""
