"""Large files stored as chunks (Xet): containers of chunks ("xorbs"), and files composed of ranges of them.

Owns: xorbs and who may use them, files and their parts, look-ups of chunks, the streams that compose a file, deletion.
Leaves to others: the formats (`hub/xet`), the stored bytes (`objects`), files that are stored as one object
(`hub/lfs`), addresses and responses (`web/xet`).
"""
