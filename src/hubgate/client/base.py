"""`BaseHub`, the part that `Hub` and `AsyncHub` share, and `copy_signature` for their methods."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, get_args

from hubgate.client.credentials import open_session
from hubgate.client.session import RETRIES
from hubgate.client.store import Store

F = TypeVar("F", bound=Callable[..., Any])


class BaseHub:
    _driver: Any
    _driver_type: ClassVar[type[Any]]

    def __init__(
        self,
        endpoint: str | None = None,
        token: str | Literal[False] | None = None,
        timeout: float = 30,
        *,
        retries: int = RETRIES,
        config_folder: Path | None = None,
    ) -> None:
        self._session = open_session(endpoint, token, Store(config_folder), retries)
        self._driver = self._driver_type(timeout)

    @property
    def endpoint(self) -> str:
        return self._session.endpoint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.endpoint!r})"


def copy_signature(method: F, operation: Callable[..., Any]) -> F:
    """Set the name, the docstring and the signature of a method from its operation."""
    functools.update_wrapper(method, operation)
    signature = inspect.signature(operation)
    session, *parameters = signature.parameters.values()
    # The operation returns Flow[T], which is Generator[Effect, Any, T]; the method returns T.
    result = get_args(signature.return_annotation)[2]
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[session.replace(name="self", annotation=inspect.Parameter.empty), *parameters],
        return_annotation=None if result is type(None) else result,
    )
    return method
