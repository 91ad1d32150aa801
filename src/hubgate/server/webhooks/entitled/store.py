"""Whether a webhook's owner may know of a repo, as a condition of a statement over `webhooks w`.

A user's webhook reads as that user, an organization's as the organization: its own repos and public ones, whichever
admin made it. Asked when an event is fanned out and again right before it is sent (attacks W30, W31). Takes the values
`private` and `owner_id`.
"""

MAY_KNOW = """
    (CAST(:private AS bigint) = 0 OR w.user_id = :owner_id OR w.org_id = :owner_id
        OR EXISTS (SELECT 1 FROM memberships m WHERE m.org_id = :owner_id AND m.user_id = w.user_id))
    AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = w.user_id AND u.disabled_at IS NOT NULL)
"""

# The same for the moment of the event, as far as it is known: what happened while a repo was private stays with those
# who could read it then, however late it is fanned out. Takes `event_private` and `event_owner`.
MIGHT_KNOW = """
    (CAST(:event_private AS bigint) = 0 OR w.user_id = :event_owner OR w.org_id = :event_owner
        OR EXISTS (SELECT 1 FROM memberships m WHERE m.org_id = :event_owner AND m.user_id = w.user_id))
"""
