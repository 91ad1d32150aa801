"""Large content (LFS files, xorbs, shards) by key, in the data folder or in an S3-compatible store.

Owns: the interface of stores (`model.py`), the two stores (`folder.py`, `s3/`), a former store that is still read while
its content is copied (`former.py`, `copying.py`), the deletion of unused content (`deletions.py`, `sweep.py`), and the
checks of a store for `hubgate doctor` (`checks.py`).
Does not own: what a key means, who may read content, and which content is used. Keys are written by the packages that
store content, such as `hub/lfs`.
"""
