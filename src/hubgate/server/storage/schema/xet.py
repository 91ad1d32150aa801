"""Tables of the chunked storage (Xet): xorbs, the files composed of them, uploads, and storage quotas.

Hashes are 64 hex digits, as in addresses; packed tables contain the raw 32 bytes (`hub/xet/packing.py`).
"""

from sqlalchemy import BigInteger, Column, ForeignKey, ForeignKeyConstraint, Index, LargeBinary, Table, Text

from hubgate.server.storage.schema.base import metadata, owner


def _xorb(*, key: bool = True) -> Column[str]:
    """The id of a xorb, with which the row is deleted."""
    return Column("xorb", Text, ForeignKey("xorbs.id", ondelete="CASCADE"), primary_key=key, nullable=False)


# Verified containers of chunks. Repos share a xorb if the sender of a file may read it (`hub/cas/permissions.py`).
# Otherwise the same xorb is stored again, with another id: nobody can find out that it was stored before.
xorbs = Table(
    "xorbs",
    metadata,
    # Random, also in the key of the object. Ids are never reused: deleting an object cannot delete a later upload.
    Column("id", Text, primary_key=True),
    Column("hash", Text, nullable=False),
    # The bytes as stored, and after decompression.
    Column("size", BigInteger, nullable=False),
    Column("raw_size", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # When the sweep first found that nothing needs the xorb; null while something does.
    Column("unused_at", BigInteger),
    Index(None, "hash"),
    Index(None, "unused_at"),
)

# The chunks of each xorb, in order: hash, sizes and position of each.
xorb_chunks = Table(
    "xorb_chunks",
    metadata,
    _xorb(),
    Column("chunks", LargeBinary, nullable=False),
)

# Chunks that clients look up before an upload: those with certain hashes, and the first chunk of each file.
xet_chunks = Table(
    "xet_chunks",
    metadata,
    Column("chunk", LargeBinary, primary_key=True),
    _xorb(),
    Index(None, "xorb"),
    sqlite_with_rowid=False,
)

# Who sent a xorb to which repo. Deleted with the xorb, or once the upload is old and files refer to the xorb.
xorb_uploads = Table(
    "xorb_uploads",
    metadata,
    Column("repo_id", Text, ForeignKey("repos.id", ondelete="CASCADE"), primary_key=True),
    _xorb(),
    # A user id; the user may have been deleted.
    Column("user_id", Text, primary_key=True),
    # 1 if the user could not write to the repo.
    Column("guest", BigInteger, nullable=False),
    # The time of the latest upload.
    Column("uploaded_at", BigInteger, nullable=False),
    Index(None, "xorb"),
    Index(None, "repo_id", "uploaded_at"),
    Index(None, "uploaded_at"),
    sqlite_with_rowid=False,
)

# Large files of a repo that are stored as chunks. A large file without a row here is stored as one object.
xet_files = Table(
    "xet_files",
    metadata,
    Column("repo_id", Text, primary_key=True),
    # SHA-256, hex; verified before the row is added.
    Column("oid", Text, primary_key=True),
    # The hash of the file in the Xet protocol.
    Column("hash", Text, nullable=False),
    # The parts of the file, in order: ranges of chunks in xorbs.
    Column("terms", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    ForeignKeyConstraint(["repo_id", "oid"], ["lfs_links.repo_id", "lfs_links.oid"], ondelete="CASCADE"),
    Index(None, "repo_id", "hash", unique=True),
    Index(None, "hash"),
    sqlite_with_rowid=False,
)

# The xorbs that a file refers to. A xorb with a row here cannot be deleted.
xet_file_xorbs = Table(
    "xet_file_xorbs",
    metadata,
    Column("repo_id", Text, primary_key=True),
    Column("oid", Text, primary_key=True),
    Column("xorb", Text, ForeignKey("xorbs.id"), primary_key=True),
    # The chunks of the xorb that are in the file (`hub/cas/ranges.py`).
    Column("ranges", LargeBinary, nullable=False),
    ForeignKeyConstraint(["repo_id", "oid"], ["xet_files.repo_id", "xet_files.oid"], ondelete="CASCADE"),
    Index(None, "xorb"),
    sqlite_with_rowid=False,
)

# Exceptions from the default quota (`HUBGATE_STORAGE_QUOTA`), set by an operator.
user_quotas = Table(
    "user_quotas",
    metadata,
    owner("users", "owner_id", key=True),
    # 0: unlimited.
    Column("bytes", BigInteger, nullable=False),
)

org_quotas = Table(
    "org_quotas",
    metadata,
    owner("organizations", "owner_id", key=True),
    Column("bytes", BigInteger, nullable=False),
)
