"""The hub server. `app.py` wires it together; each package covers one subject, and imports point one way.

`tests/test_architecture.py` defines the import order. Each package's docstring says what the package owns.
Attack numbers in comments, such as O44 and W28, refer to `docs/threats.md`.
"""
