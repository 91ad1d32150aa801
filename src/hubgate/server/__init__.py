"""The hub. Wired in `app.py` alone; packages below it are subjects, and imports point one way.

See `tests/test_architecture.py` for the order, and each package's docstring for what it owns.
"""
