"""Deliveries that were answered and are still to be worked on: an SQLite file beside the program.

Owns: the file, which process works through it, when a failed delivery is tried again. Does not own: who may put
something in (`verification`), what a handler is (`calling`). Called by `server`.
"""
