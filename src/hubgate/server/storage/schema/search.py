"""The table of everything that can be searched, and the text index on it, which each engine has in its own form."""

from sqlalchemy import DDL, BigInteger, Column, Index, Integer, Table, Text, event

from hubgate.server.storage.schema.base import metadata, owner

# One document for each repo, discussion, user, organization and collection (search/store.py). Tokens are separated by
# spaces.
search_documents = Table(
    "search_documents",
    metadata,
    # A later document has a higher id. SQLite's text index refers to rows by this number.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    # The id of the repo, discussion, user, organization or collection.
    Column("target", Text, nullable=False, unique=True),
    # "repo", "discussion", "account" or "collection".
    Column("section", Text, nullable=False),
    # The repo, also of a discussion.
    owner("repos", "repo_id", nullable=True),
    # Who may see it. Results are checked again.
    Column("access", Text, nullable=False),
    # Its kind, and the words of its name.
    Column("names", Text, nullable=False),
    # The words and tags of its card or description.
    Column("texts", Text, nullable=False),
    Index(None, "repo_id"),
    Index(None, "section", "id"),
)

_COLUMNS = "access, names, texts"
_OLD, _NEW = "old.access, old.names, old.texts", "new.access, new.names, new.texts"
_REMOVE = f"INSERT INTO search_words (search_words, rowid, {_COLUMNS}) VALUES ('delete', old.id, {_OLD});"
_ADD = f"INSERT INTO search_words (rowid, {_COLUMNS}) VALUES (new.id, {_NEW});"
_SQLITE = (
    f"""
    CREATE VIRTUAL TABLE search_words USING fts5({_COLUMNS}, content='search_documents', content_rowid='id',
        detail='none', columnsize=0, tokenize="ascii tokenchars '~.=#:'")
    """,
    f"CREATE TRIGGER search_documents_added AFTER INSERT ON search_documents BEGIN {_ADD} END",
    f"CREATE TRIGGER search_documents_removed AFTER DELETE ON search_documents BEGIN {_REMOVE} END",
    f"CREATE TRIGGER search_documents_changed AFTER UPDATE ON search_documents BEGIN {_REMOVE} {_ADD} END",
)
# Stored, so that a document is compared without splitting its texts. Most rows stay in one piece, up to 8 KB.
_POSTGRES = (
    """
    ALTER TABLE search_documents ADD COLUMN search_words tsvector GENERATED ALWAYS AS (
        array_to_tsvector(array_remove(string_to_array(access || ' ' || names || ' ' || texts, ' '), ''))
    ) STORED
    """,
    "ALTER TABLE search_documents SET (toast_tuple_target = 8160)",
    """
    CREATE INDEX ix_search_documents_words ON search_documents USING gin (search_words, (string_to_array(access, ' ')))
    WITH (gin_pending_list_limit = 256)
    """,
)
for _dialect, _statements in (("sqlite", _SQLITE), ("postgresql", _POSTGRES)):
    for _statement in _statements:
        event.listen(search_documents, "after_create", DDL(_statement).execute_if(dialect=_dialect))  # type: ignore[no-untyped-call]
