"""Opens the store that the settings name."""

import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from msgspec import Struct

from hubgate.server.clock import Clock, system_clock
from hubgate.server.errors import StartupError
from hubgate.server.objects import location
from hubgate.server.objects.folder import FolderObjects
from hubgate.server.objects.former import WithFormer
from hubgate.server.objects.model import Objects, StoreFinding


class StoreSettings(Struct, frozen=True):
    """The settings of the store. `url` is empty for the data folder, `former_url` if there is no former store."""

    data_dir: Path
    url: str = ""
    former_url: str = ""
    with_links: bool = True
    public_endpoint: str = ""
    # The origin of the hub. Files are never served from it without the hub's headers, which prevent that they act as
    # pages of the hub: if a store has the same origin, its files are downloaded through the hub.
    hub_url: str = ""
    # For tests.
    silence_seconds: float = 20.0
    retry_seconds: float = 15.0
    first_pause: float = 0.2
    single_bytes: int = 64 * 1024 * 1024
    part_bytes: int = 32 * 1024 * 1024


def open_objects(settings: StoreSettings, environment: Mapping[str, str]) -> Objects:
    current = open_store(settings.url or location.FOLDER, settings, environment)
    if not settings.former_url or settings.former_url == (settings.url or location.FOLDER):
        return current
    return WithFormer(current, open_store(settings.former_url, settings, environment))


def require_variables(settings: StoreSettings, environment: Mapping[str, str]) -> None:
    """Raise StartupError if variables that a store needs are missing or malformed."""
    for url in (settings.url, settings.former_url):
        if url not in ("", location.FOLDER):
            location.credentials(environment)
            _tls(location.s3_location(url, environment).endpoint, environment.get("AWS_CA_BUNDLE", ""))


def open_store(
    url: str, settings: StoreSettings, environment: Mapping[str, str], clock: Clock = system_clock
) -> Objects:
    """Open one store. Signatures need the real time, which the store checks, even if the hub's clock is frozen."""
    if url == location.FOLDER:
        return FolderObjects(settings.data_dir)
    # Imported here: most hubs use the folder, and httpx takes a tenth of a second of every start.
    from hubgate.server.objects.s3.multipart import PartSizes
    from hubgate.server.objects.s3.signatures import Signer
    from hubgate.server.objects.s3.store_client import S3Objects
    from hubgate.server.objects.s3.transport import Pace, Transport

    place = location.s3_location(url, environment)
    signer = Signer(location.credentials(environment), location.region(environment))
    pace = Pace(settings.silence_seconds, settings.retry_seconds, first_pause=settings.first_pause)
    transport = Transport(place, signer, clock, pace, _tls(place.endpoint, environment.get("AWS_CA_BUNDLE", "")))
    sizes = PartSizes(settings.single_bytes, settings.part_bytes)
    public = place.address(None, settings.public_endpoint)
    with_links = settings.with_links and f"{public.scheme}://{public.host}" != settings.hub_url
    return S3Objects(transport, sizes, settings.public_endpoint, with_links=with_links)


async def examine_store(objects: Objects) -> AsyncIterator[StoreFinding]:
    """The findings about an S3-compatible store; none about a folder."""
    from hubgate.server.objects.checks import examine
    from hubgate.server.objects.s3.store_client import S3Objects

    if isinstance(objects, S3Objects):
        async for finding in examine(objects):
            yield finding


def _tls(endpoint: str, ca_bundle: str) -> ssl.SSLContext | None:
    if not endpoint.startswith("https:"):
        return None
    try:
        return ssl.create_default_context(cafile=ca_bundle or None)
    except (OSError, ssl.SSLError) as error:
        raise StartupError(f"AWS_CA_BUNDLE: {error}") from None
