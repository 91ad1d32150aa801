"""Outgoing mail: texts, outbox and transports.

A use case adds a message to the outbox in the transaction of its change; a sender then delivers it to the SMTP server
or writes it to a folder. Does not own the decision when to send mail and to whom.
"""
