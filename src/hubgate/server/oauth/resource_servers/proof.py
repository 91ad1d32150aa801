"""The proof that an owner controls an identifier: its origin serves the challenge of the registration.

The challenge is random, its address is fixed and redirects are not followed, so a server cannot be led to serve the
challenge of somebody else. The first owner who proves an identifier has it until the registration is deleted.
"""

from hubgate.server.accounts.limits import network_of
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.egress.resolve import Unreachable
from hubgate.server.egress.target import AddressNotAllowed, parse_target
from hubgate.server.errors import Conflict, HubError
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.resource_servers import store
from hubgate.server.oauth.resource_servers.management import lock_server, record_audit
from hubgate.server.oauth.resource_servers.model import ResourceServer
from hubgate.server.storage.database import ConstraintViolated, Tx
from hubgate.server.throttle.rate_limiter import Limit

FETCH_SECONDS = 5.0
MAX_BYTES = 16 * 1024
_TOO_MANY = "Too many checks of this host. Wait {duration}."
# Per user and host, so that a stranger's checks do not block the owner's; then per host, which is not to be flooded.
PROOFS_BY_USER = Limit("resource proof user", 10, 60, _TOO_MANY)
PROOFS_OF_HOST = Limit("resource proof host", 100, 60, _TOO_MANY)
PROOFS_FOR_CALLER = Limit("resource proof caller", 30, 60, "Too many checks. Wait {duration}.")
# The cause is not shown (attack W18), so this names all of them.
_REACHABLE = (
    "This hub must reach it over https, with a valid certificate. For a server in a private network, ask the operator."
)


class ProofMissing(Conflict):
    """The origin does not serve the challenge; the message says what was found instead."""


async def verify(oauth: OAuth, server: ResourceServer, actor: Actor) -> ResourceServer:
    """Fetch the challenge from the identifier's origin. ProofMissing if it is not served, Conflict if another owner has
    proved the identifier before. A server that needs no proof is returned as it is.
    """
    if server.is_active:
        return server
    await oauth.limiter.take(PROOFS_FOR_CALLER, network_of(actor.ip or ""))
    if server.challenge not in (await _fetch(oauth, server.challenge_url, actor)).split():
        raise ProofMissing(f"{server.challenge_url} does not contain the challenge. Serve it there as plain text.")
    now = oauth.clock()

    async def unit(tx: Tx) -> ResourceServer:
        latest = await lock_server(tx, server, actor)
        if not await store.set_verified(tx, latest.id, now):
            raise _taken()
        await record_audit(tx, latest, EntryType.RESOURCE_VERIFY, "proved control of", actor, now)
        return await store.find(tx, latest.id) or latest

    try:
        return await oauth.db.write(unit)
    except ConstraintViolated:
        # Another owner proved it concurrently.
        raise _taken() from None


async def _fetch(oauth: OAuth, url: str, actor: Actor) -> str:
    try:
        host = parse_target(url).host
        await oauth.limiter.take(PROOFS_BY_USER, f"{actor.user_id} {host}")
        await oauth.limiter.take(PROOFS_OF_HOST, host)
        response = await oauth.documents.egress.get(
            url, {"Accept": "text/plain", "User-Agent": "hubgate"}, seconds=FETCH_SECONDS, cap=MAX_BYTES
        )
    except AddressNotAllowed as error:
        raise ProofMissing(f"{url} could not be fetched. {error.message}") from error
    except Unreachable as error:
        raise ProofMissing(f"{url} could not be fetched. {error} {_REACHABLE}") from error
    if response.status != 200:
        hint = " Redirects are not followed." if 300 <= response.status < 400 else ""
        raise ProofMissing(f"{url} answered with status {response.status} instead of 200.{hint}")
    return response.body.decode(errors="replace")


def _taken() -> HubError:
    return Conflict("Another owner has proved control of this identifier. Ask the operator if it is yours now.")
