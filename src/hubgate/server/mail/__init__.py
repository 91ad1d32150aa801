"""Outgoing mail: what it says, and how it gets out.

A use case puts a message into the outbox in the transaction of its change; a sender takes it from there to the SMTP
server or into a folder. Owns the texts, the outbox and the transports, not the decision when to write to whom.
"""
