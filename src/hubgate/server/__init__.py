"""The hub server. `resources.py` builds the use cases, `app.py` the routes; each package covers one subject.

`tests/test_architecture.py` defines the import order. Each package's docstring says what the package owns.
Attack numbers in comments, such as O44 and W28, refer to `docs/threats.md`.
"""
