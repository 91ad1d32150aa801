"""`make contract`: rewrite contract/openapi.json from the routes. Review the difference before you commit it."""

import json
import tempfile
from pathlib import Path
from typing import Any

import httpx
from tests.bed.engines import SqliteEngine, create_sqlite_template, settings_for
from tests.bed.running_hub import RunningHub, run_hub

SNAPSHOT = Path(__file__).parents[2] / "contract/openapi.json"


def product_document(hub: RunningHub) -> dict[str, Any]:
    """The product's document: without the test build's routes, and with a fixed URL."""
    document: dict[str, Any] = httpx.get(f"{hub.url}/api/openapi.json").json()
    document["paths"] = {
        path: item for path, item in document["paths"].items() if not path.startswith(("/api/test", "/oauth/test"))
    }
    document["components"]["schemas"].pop("Write")
    document["servers"] = [{"url": "{base_url}"}]
    document["info"]["version"] = "{version}"
    return document


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = SqliteEngine(create_sqlite_template(folder), folder).fresh_url()
        with run_hub(settings_for(url, folder)) as hub:
            SNAPSHOT.write_text(json.dumps(product_document(hub), indent=2) + "\n")
    print(f"wrote {SNAPSHOT.name}")


if __name__ == "__main__":
    main()
