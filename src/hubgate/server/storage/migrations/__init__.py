"""Alembic migrations. A file is named after its revision (`0001_subject.py`); revisions are applied in order."""
