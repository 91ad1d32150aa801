"""Fixtures live in tests/bed; see its docstring."""

pytest_plugins = ("tests.bed.plugin",)
