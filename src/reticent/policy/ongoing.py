"""Baselines for a problem that goes on: one-step lookahead, and a fixed sensor every so many steps.

`RandomSensor` and `InformationGain` serve there, too: silence takes the place of the stop.
"""

import jax.numpy as jnp

from reticent.guard.ongoing import OngoingState
from reticent.policy.ongoing_features import step_costs
from reticent.policy.policy import Policy
from reticent.process.ongoing import OngoingProcess
from reticent.types import Index, PRNGKey


class CheapestStep(Policy):
    """One-step lookahead: whatever makes this step cheapest, at the cost of all that come after it.

    Args:
        process: The process that it looks ahead in.

    Example:
        >>> from reticent.problem.synthetic import tells_useful
        >>> moves = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.5, 0.5], [0.5, 0.5]]}
        >>> process = rt.OngoingProcess(rt.Monitoring(tells_useful().moving(moves), rt.Confidence(0.8)))
        >>> rt.monitor(process, rt.CheapestStep(process), days=2).accuracy_useful.value
        1.0
    """

    process: OngoingProcess

    def act(self, key: PRNGKey, public: OngoingState) -> Index:
        del key
        return jnp.argmin(jnp.where(public.allowed, step_costs(self.process, public), jnp.inf))


class EverySteps(Policy):
    """The same sensor every `period` steps, where it is allowed; silence between."""

    sensor: Index
    period: Index

    def act(self, key: PRNGKey, public: OngoingState) -> Index:
        del key
        speaks = (public.step % self.period == 0) & public.allowed[self.sensor]
        return jnp.where(speaks, self.sensor, public.allowed.size - 1)
