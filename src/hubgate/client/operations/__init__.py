"""What can be asked of a hub, one file per subject: functions that take a session and are flows of effects.

They know paths and shapes; how a request travels is `session`'s affair, and who waits for it a face's.
"""
