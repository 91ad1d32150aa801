"""Large files (LFS): stored once by their SHA-256, linked to each repo that they were uploaded to.

Owns: the files, the links between repos and files, single and multipart uploads, signed URLs that expire.
"""
