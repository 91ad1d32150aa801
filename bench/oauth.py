"""Sign-in for apps as apps use it: a code redeemed, a token refreshed, its user asked for, a token asked about."""

from bench.ground import Ground
from bench.harness import Table
from bench.load import ONCE, REPEAT, ROTATE
from bench.operations import TURN, Operation, Subject, compared
from bench.sign_ins import SignIns, signed_in
from hubgate.server.opened import Hub

# Pairs of access and refresh tokens in the tables before anything is measured on them.
STORED_PAIRS = 5_000
# More than can be redeemed; a turn that runs out of them is a shorter turn.
CODES_A_SECOND = 2_500


def measure(ground: Ground) -> list[Table]:
    seconds = ground.budget.seconds(TURN)
    operations = (
        Operation[SignIns]("code redeemed", ONCE, lambda people: people.redemptions(int(CODES_A_SECOND * seconds))),
        Operation("refresh", ROTATE, SignIns.refreshes),
        Operation("userinfo", REPEAT, SignIns.userinfos),
        Operation("introspection", REPEAT, SignIns.introspections),
    )

    async def people(hub: Hub) -> SignIns:
        found = await signed_in(hub)
        await found.fill(int(STORED_PAIRS * ground.budget.scale))
        return found

    return compared(ground, Subject("oauth", "Sign-in for apps", operations, people))
