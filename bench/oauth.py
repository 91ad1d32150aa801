"""Sign-in for apps: code redemption, refresh, userinfo and introspection."""

from bench.ground import Ground
from bench.harness import Table
from bench.load import ONCE, REPEAT, ROTATE
from bench.operations import TURN, Operation, Subject, compared
from bench.sign_ins import SignIns, signed_in
from hubgate.server.resources import Hub

# Pairs of access and refresh tokens that are stored before measuring.
STORED_PAIRS = 5_000
# More codes than can be redeemed; a turn that runs out of codes ends early.
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
