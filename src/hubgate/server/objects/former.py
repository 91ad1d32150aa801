"""A store together with a former one, whose content is being copied: new content is stored in the current one, and
existing content is read from either.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path

from hubgate.server.objects.model import Objects, StoredObject


class WithFormer:
    """Implements `Objects` over two stores."""

    def __init__(self, current: Objects, former: Objects) -> None:
        self._current = current
        self._former = former

    @property
    def name(self) -> str:
        return f"{self._current.name} (formerly {self._former.name})"

    async def put(self, key: str, content: Path | bytes, digest: str) -> bool:
        return await self._current.put(key, content, digest)

    async def get(self, key: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        async with aclosing((await self._store_of(key)).get(key, start, end)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def link(
        self, key: str, seconds: int, headers: Mapping[str, str], span: tuple[int, int] | None = None
    ) -> str | None:
        return await (await self._store_of(key)).link(key, seconds, headers, span)

    async def local_file(self, key: str) -> Path | None:
        return await (await self._store_of(key)).local_file(key)

    async def size(self, key: str) -> int | None:
        found = await self._current.size(key)
        return await self._former.size(key) if found is None else found

    async def delete(self, key: str) -> None:
        # The former first: if this is interrupted, the current store still lists the content.
        await self._former.delete(key)
        await self._current.delete(key)

    async def list(self, prefix: str, after: str = "") -> AsyncGenerator[StoredObject, None]:
        """The content of the current store. Content that is only in the former one is copied, or not needed."""
        async with aclosing(self._current.list(prefix, after)) as found:
            async for item in found:
                yield item

    async def delete_unfinished(self, before: int) -> int:
        return await self._current.delete_unfinished(before)

    async def close(self) -> None:
        await self._current.close()
        await self._former.close()

    async def _store_of(self, key: str) -> Objects:
        """The store that has the content; the current one if none has it."""
        if await self._current.size(key) is None and await self._former.size(key) is not None:
            return self._former
        return self._current
