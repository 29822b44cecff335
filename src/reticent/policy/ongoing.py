"""For a problem that goes on: lookahead for one step and for the long run, and a fixed sensor every so many steps.

`RandomSensor` and `InformationGain` serve there, too: silence takes the place of the stop.
"""

import jax.numpy as jnp

from reticent.guard.ongoing import OngoingState
from reticent.policy.ongoing_features import long_run_costs, step_costs
from reticent.policy.policy import Policy
from reticent.process.ongoing import OngoingProcess
from reticent.types import Index, PRNGKey, Scalar


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


class LongRunLookahead(Policy):
    """Lookahead on the value for the long run: whatever makes this step and V after it cheapest.

    Where merged symbols are priced for the long run, too, the weights are best those of `LongRunKernels`;
    `rt.solve(task, "long-run")` finds them.

    Args:
        process: The process that it looks ahead in.
        omega: What the quadratic score of U is worth beyond this step.
        kappa: What that of S costs.

    Example:
        >>> import jax.numpy as jnp
        >>> from reticent.problem.synthetic import tells_useful
        >>> moves = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.5, 0.5], [0.5, 0.5]]}
        >>> process = rt.OngoingProcess(rt.Monitoring(tells_useful().moving(moves), rt.Confidence(0.8)))
        >>> policy = rt.LongRunLookahead(process, jnp.asarray(1.0), jnp.asarray(1.0))
        >>> rt.monitor(process, policy, days=2).accuracy_useful.value
        1.0
    """

    process: OngoingProcess
    omega: Scalar
    kappa: Scalar

    def act(self, key: PRNGKey, public: OngoingState) -> Index:
        del key
        costs = long_run_costs(self.process, public, self.omega, self.kappa)
        return jnp.argmin(jnp.where(public.allowed, costs, jnp.inf))


class EverySteps(Policy):
    """The same sensor every `period` steps, where it is allowed; silence between."""

    sensor: Index
    period: Index

    def act(self, key: PRNGKey, public: OngoingState) -> Index:
        del key
        speaks = (public.step % self.period == 0) & public.allowed[self.sensor]
        return jnp.where(speaks, self.sensor, public.allowed.size - 1)
