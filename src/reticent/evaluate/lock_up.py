"""Whether a chain is too slow for its bound: told before anything is trained, by a few simulated days."""

from reticent.evaluate.monitoring import monitor
from reticent.policy.ongoing import CheapestStep
from reticent.process.ongoing import OngoingProcess

# So many days of one-step lookahead. It is said where more than this share of steps is locked at the end of a day, or
# where by so much more of them is silent than at its beginning.
DAYS, MOST_LOCKED, MOST_SILENCED = 16, 0.5, 0.25


def lock_up(process: OngoingProcess, seed: int = 0) -> str | None:
    """A sentence where a device that speaks whenever that pays at once falls silent in the course of a day."""
    found = monitor(process, CheapestStep(process), DAYS, seed)
    first, last = found.course[0], found.course[-1]
    if last["locked"] <= MOST_LOCKED and last["silent"] - first["silent"] <= MOST_SILENCED:
        return None
    return (
        f"The chain is slow for the bound: nothing is sent in {100 * first['silent']:.0f} % of steps at the beginning "
        f"of a day of {found.steps:,}, and in {100 * last['silent']:.0f} % at its end. {found.silence} These are "
        f"estimates, from {DAYS} days of one-step lookahead. Choose a larger bound, a longer time step, or a model "
        "whose secret moves faster."
    )
