"""Events: changes to repos, as they are sent to webhooks.

Owns: the kinds of events, their payloads, and the row written in the transaction of the change (`outbox`). Does not
own: watches and delivery (`webhooks`), or the changes themselves (`hub`).
"""
