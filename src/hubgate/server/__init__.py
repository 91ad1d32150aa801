"""The hub server. `app.py` wires it together; each package covers one subject, and imports point one way.

`tests/test_architecture.py` defines the import order. Each package's docstring says what the package owns.
"""
