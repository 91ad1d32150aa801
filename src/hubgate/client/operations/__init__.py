"""The operations of a hub, one file per subject: functions that take a session and return a flow of effects.

Operations know paths and data types. `session` runs the requests, and `Hub` or `AsyncHub` performs the effects.
"""
