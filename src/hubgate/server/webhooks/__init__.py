"""Telling watchers what happened: who watches what, who is told, every delivery until it arrives.

An event is written by the change itself (`events/`). From there: `fanout/` makes one delivery for each watcher that
may know of it; `delivering/` claims them with leases, sends, and writes down what came of it; `activity/` shows it.
Whatever dies on the way, the database says what is left to do: each delivery arrives at least once.
"""
