"""Reading the deliveries of a webhook by their numbers: in pages, and live.

Owns the cursor, the check of permissions for each entry, and the wake-ups of live streams. The delivery log, with
attempts and responses, belongs to `activity/`; the HTTP formats belong to `web/api/webhook_events.py`.
"""
