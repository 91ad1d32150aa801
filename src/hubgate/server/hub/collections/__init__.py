"""Collections: ordered lists of repos and of other collections, owned by users and organizations.

Owns: titles and slugs, the order of items and their notes, and which items a caller sees. An item is listed only for
callers who may see its repo or collection, so a public collection never reveals a private repo.

Does not own: the permission to see or change a collection (`access/policy.py`). Collections record no events: webhooks
watch repos.

Called by: `web/api/collections` and `web/pages/collections`, and for the export and the deletion of an account.
"""
