"""Shared definitions of the schema: metadata with naming conventions, and the owner column."""

from sqlalchemy import Column, ForeignKey, MetaData, Text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def owner(table: str, column: str, *, key: bool = False, nullable: bool = False) -> Column[str]:
    """A foreign key whose row is deleted together with the row it refers to."""
    return Column(column, Text, ForeignKey(f"{table}.id", ondelete="CASCADE"), primary_key=key, nullable=nullable)
