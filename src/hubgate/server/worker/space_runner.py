"""The runner of Spaces that the settings name. Apart from `spaces.py`: commands need it without git and HTTP."""

from hubgate.server.errors import StartupError
from hubgate.server.settings import Settings
from hubgate.server.spaces.bubblewrap.runner import BubblewrapRunner
from hubgate.server.spaces.runner import LimitsTogether, Runner


def runner_for(settings: Settings) -> Runner:
    together = LimitsTogether(settings.memory_of_spaces, settings.spaces_disk_together)
    return BubblewrapRunner(settings.data_dir / "spaces", together)


def require_runner(settings: Settings) -> None:
    """StartupError if this machine cannot run Spaces as the settings say."""
    problems = runner_for(settings).problems() if settings.runs_spaces else []
    if problems:
        reasons = " ".join(problems)
        raise StartupError(f"HUBGATE_SPACES_RUNNER={settings.spaces_runner} cannot be used here. {reasons}")
