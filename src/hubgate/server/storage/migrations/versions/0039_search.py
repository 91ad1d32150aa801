"""Adds documents and a text index for searches. The background process creates the documents of existing rows."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"

_COLUMNS = "access, names, texts"
_REMOVE = f"""
    INSERT INTO search_words (search_words, rowid, {_COLUMNS})
    VALUES ('delete', old.id, old.access, old.names, old.texts);
"""
_ADD = f"INSERT INTO search_words (rowid, {_COLUMNS}) VALUES (new.id, new.access, new.names, new.texts);"


def upgrade() -> None:
    op.create_table(
        "search_documents",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("target", sa.Text, nullable=False, unique=True),
        sa.Column("section", sa.Text, nullable=False),
        sa.Column("repo_id", sa.Text, sa.ForeignKey("repos.id", ondelete="CASCADE")),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("access", "names", "texts")),
    )
    op.create_index("ix_search_documents_repo_id", "search_documents", ["repo_id"])
    op.create_index("ix_search_documents_section_id", "search_documents", ["section", "id"])
    (_index_on_sqlite if op.get_bind().dialect.name == "sqlite" else _index_on_postgres)()
    # In a new database the index is complete from the start.
    op.execute(
        "INSERT INTO milestones (name, reached_at) SELECT 'search index', 0 WHERE NOT EXISTS (SELECT 1 FROM users)"
    )


def _index_on_sqlite() -> None:
    op.execute(
        f"""
        CREATE VIRTUAL TABLE search_words USING fts5({_COLUMNS}, content='search_documents', content_rowid='id',
            detail='none', columnsize=0, tokenize="ascii tokenchars '~.=#:'")
        """
    )
    for name, change, body in (
        ("added", "INSERT", _ADD),
        ("removed", "DELETE", _REMOVE),
        ("changed", "UPDATE", _REMOVE + _ADD),
    ):
        op.execute(f"CREATE TRIGGER search_documents_{name} AFTER {change} ON search_documents BEGIN {body} END")


def _index_on_postgres() -> None:
    op.execute(
        """
        ALTER TABLE search_documents ADD COLUMN search_words tsvector GENERATED ALWAYS AS (
            array_to_tsvector(array_remove(string_to_array(access || ' ' || names || ' ' || texts, ' '), ''))
        ) STORED
        """
    )
    op.execute("ALTER TABLE search_documents SET (toast_tuple_target = 8160)")
    op.execute(
        """
        CREATE INDEX ix_search_documents_words ON search_documents
        USING gin (search_words, (string_to_array(access, ' '))) WITH (gin_pending_list_limit = 256)
        """
    )
