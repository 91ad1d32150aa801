"""Sign-in for apps: code redemption, refresh, userinfo and introspection."""

from bench.harness import Table
from bench.load import ONCE, REPEAT, ROTATE
from bench.operations import TURN, Operation, Subject, compare
from bench.sign_ins import SignIns, create_sign_ins
from bench.workspace import Workspace
from hubgate.server.resources import Hub

# Pairs of access and refresh tokens that are stored before measuring.
STORED_PAIRS = 5_000
# More codes than can be redeemed; a turn that runs out of codes ends early.
CODES_PER_SECOND = 2_500


def measure(workspace: Workspace) -> list[Table]:
    seconds = workspace.budget.seconds(TURN)
    operations = (
        Operation[SignIns](
            "code redeemed", ONCE, lambda fixtures: fixtures.redemptions(int(CODES_PER_SECOND * seconds))
        ),
        Operation("refresh", ROTATE, SignIns.refreshes),
        Operation("userinfo", REPEAT, SignIns.userinfos),
        Operation("introspection", REPEAT, SignIns.introspections),
    )

    async def fixtures(hub: Hub) -> SignIns:
        found = await create_sign_ins(hub)
        await found.fill(int(STORED_PAIRS * workspace.budget.scale))
        return found

    return compare(workspace, Subject("oauth", "Sign-in for apps", operations, fixtures))
