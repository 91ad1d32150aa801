"""All statements of fan-out, delivery and roll-up. `python -m tests.bed.delivery_statements` prints them."""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType

from hubgate.server.storage.sqltext import RowStatement, as_single_statement, positional
from hubgate.server.webhooks import deliveries_store, delivering, fanout, insight, replaying, shards, watches
from hubgate.server.webhooks.activity import rollup_store

_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE)\s")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z0-9_]*)")

Statement = str | RowStatement


def statements() -> dict[str, Statement]:
    """By module and name, or by module and line for those inside functions."""
    found: dict[str, Statement] = {}
    modules = [deliveries_store, rollup_store]
    for package in (delivering, fanout, insight, replaying, shards, watches):
        found_modules = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        modules += [importlib.import_module(info.name) for info in found_modules]
    for module in modules:
        name = module.__name__.removeprefix("hubgate.server.webhooks.")
        found.update({f"{name} {where}": statement for where, statement in _of_module(module)})
    return found


def _of_module(module: ModuleType) -> Iterator[tuple[str, Statement]]:
    tree = ast.parse(inspect.getsource(module))
    defined = {target.id for node in tree.body if isinstance(node, ast.Assign) for target in _names(node)}
    for name in sorted(defined):
        value = vars(module)[name]
        for number, each in enumerate(value if isinstance(value, tuple) else [value]):
            is_template = isinstance(each, str) and "{" in each
            if isinstance(each, RowStatement) or (isinstance(each, str) and _SQL.match(each) and not is_template):
                yield f"{name}[{number}]" if isinstance(value, tuple) else name, each
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for text in _texts(function):
                # Statements inside functions consist of constants of their module only.
                sql = eval(compile(ast.Expression(text), module.__name__, "eval"), vars(module))
                if _SQL.match(sql):
                    yield f"line {text.lineno}", sql


def _names(node: ast.Assign) -> list[ast.Name]:
    return [target for target in node.targets if isinstance(target, ast.Name)]


def _texts(function: ast.AST) -> Iterator[ast.JoinedStr | ast.Constant]:
    """The texts in a function that begin like a statement."""
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and _SQL.match(first.value):
            assert isinstance(node, ast.JoinedStr | ast.Constant)
            yield node
        if not isinstance(node, ast.JoinedStr):
            pending += ast.iter_child_nodes(node)


def for_sqlite(statement: Statement) -> tuple[str, list[str]]:
    """The text, and the names of its parameters."""
    sql = statement.sql if isinstance(statement, RowStatement) else statement
    return sql, sorted(set(_PARAMETER.findall(sql)))


def for_postgres(statement: Statement) -> str:
    return (as_single_statement(statement) if isinstance(statement, RowStatement) else positional(statement))[0]


def main() -> None:
    for where, statement in statements().items():
        for engine, sql in (("SQLite", for_sqlite(statement)[0]), ("PostgreSQL", for_postgres(statement))):
            print(f"-- {where}, {engine}\n{textwrap.dedent(sql).strip()};\n")


if __name__ == "__main__":
    main()
