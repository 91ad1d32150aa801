"""Merges the parts of the text index in the background, so that searches stay fast while documents change."""

from dataclasses import dataclass

from hubgate.server.storage.database import Database

EVERY_SECONDS = 60.0
# With more parts, all are merged.
MAX_PARTS = 8
# Writers add parts while others are merged: then the next run continues.
MAX_STEPS = 200


@dataclass
class Compaction:
    db: Database
    _steps: int = 0

    async def step(self) -> bool:
        """Merge a little; return whether there is more to merge."""
        parts = await self.db.read_long(self.db.text_index.parts)
        if parts <= (2 if self._steps else MAX_PARTS) or self._steps == MAX_STEPS:
            self._steps = 0
            return False
        await self.db.write_long(self.db.text_index.merge_parts)
        self._steps += 1
        return True
