"""Xet: files divided into chunks by content, stored in xorbs, described by shards (Xet protocol 1.1).

Owns: the formats of the protocol (hashes, chunking, xorbs, shards, reconstructions) as pure functions and parsers that
read no file, no database and no network. Uploads are checked here; every violation raises `InvalidXet`.

Formats, from the bottom up: `hashes` and `tree` (hashes of chunks, xorbs and files), `chunking` (with `gear_table`),
`compression` and `chunk_format` (one chunk in a xorb), `xorb_table` (the chunks of a xorb), `xorb` (verification of an
upload), `shard` and `shard_writer` (files and xorbs described), `file_check` (a file against its xorbs), `plan` and
`reconstruction` (which bytes of which xorbs restore a range of a file).
"""
