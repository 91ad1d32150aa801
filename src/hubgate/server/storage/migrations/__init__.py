"""Alembic's folder. A file is named for its revision (`0001_subject.py`), and revisions follow one another in order."""
