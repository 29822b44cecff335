"""Acting greedily on a value function: one step ahead exactly, then what was learned."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.belief.bayes import secret_joint, useful_joint
from reticent.policy.features import describe
from reticent.policy.network import Network
from reticent.policy.policy import Policy, best
from reticent.policy.settings import KernelChoice, described
from reticent.policy.value import continuation_value, q_values
from reticent.problem.merging import REFINEMENTS
from reticent.process.process import Process, PublicState
from reticent.types import Array, Belief, Index, PRNGKey, Scalar

# Outputs of a fresh network are small; this lets them reach every share with a few steps of learning.
STEEPNESS, FIRST_LOGIT = 20.0, 2.5


class ValueFunction(eqx.Module):
    """V(beta, m) = min(stop cost, continuation value): the stop is exact, only the continuation value is learned.

    Where crossing ends the episode, V jumps with every symbol that starts to land in F. So the next release is exact,
    too, and what is learned, for each sensor, is which share of the stop cost that it leaves is still paid in the end:

        Q_a = C_T + C_B P(F | beta, a) + share_a E[stop cost; not F | beta, a],    continuation = min_a Q_a.
    """

    process: Process
    network: Network

    def __call__(self, belief: Float[Array, "*N S U"], spent_bits: Float[Array, "*M"]) -> Float[Array, "*N"]:
        return self.process.at_each(self._value)(belief, spent_bits)

    def _value(self, belief: Belief, spent_bits: Scalar) -> Scalar:
        return jnp.minimum(self.process.stop_cost(belief), jnp.min(self.q_values(belief, spent_bits)))

    def continuation(
        self, belief: Float[Array, "*N S U"], spent_bits: Float[Array, "*M"] | float = 0.0
    ) -> Float[Array, "*N"]:
        """Learned cost of releasing at least once more and acting well from then on."""
        return self.process.at_each(lambda *at: jnp.min(self.q_values(*at)))(belief, spent_bits)

    def q_values(self, belief: Belief, spent_bits: Scalar) -> Float[Array, " O"]:
        """The learned costs whose least is the continuation value: of each sensor, or only that one."""
        process = self.process
        if not process.ends_on_crossing:
            return continuation_value(process, self.network, belief, spent_bits)[None]
        learned = self.network(describe(belief, process.used(belief, spent_bits)))
        return _by_sensor(process, belief, learned).astype(belief.dtype)


def value_network(process: Process, width: int, key: PRNGKey) -> Network:
    """A fresh network of the sizes that a value function of this process has.

    It says half the stop cost at the prior everywhere; where crossing ends the episode nearly the cost of one release
    and then the stop, from which iteration comes down faster than it would come up from too low a value.
    """
    network = Network(described(*process.prior.shape), outputs(process), width, key)
    half = process.stop_cost(process.prior) / process.objective.error_penalty / 2
    start = FIRST_LOGIT / STEEPNESS if process.ends_on_crossing else half
    return eqx.tree_at(lambda n: n.layers[-1].bias, network, jnp.full(outputs(process), start, jnp.float32))


def outputs(process: Process) -> int:
    """How many numbers a value function of this process learns at a belief."""
    return process.sensors if process.ends_on_crossing else 1


def _by_sensor(process: Process, belief: Belief, learned: Float[Array, " A"]) -> Float[Array, " A"]:
    """Q_a, in 32 bits."""
    parts = (process.bound, process.enforcement, process.objective, process.channel, belief)
    bound, enforcement, objective, channel, belief = jax.tree.map(lambda x: x.astype(learned.dtype), parts)
    useful, secret = useful_joint(belief, channel), secret_joint(belief, channel)
    law = useful.sum(0)
    forbidden = bound.entered(secret, law)
    entered = jnp.sum(jnp.where(forbidden, law, 0), axis=1)
    doubt = jnp.sum(jnp.where(forbidden, 0, law - useful.max(0)), axis=1)
    violation_cost = enforcement.release_cost(objective, bound, False, True) - objective.time_cost
    share = jax.nn.sigmoid(STEEPNESS * learned)
    return objective.time_cost + violation_cost * entered + objective.error_penalty * share * doubt


class Lookahead(Policy):
    """The sensor of the lowest one-step cost to go; stops when stopping is no dearer."""

    process: Process
    value: ValueFunction

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        del key
        costs = q_values(self.process, self.value, public)
        return best(public, -costs, self.process.stop_cost(public.belief) <= jnp.min(costs))

    def acts_in(self, process: Process) -> Process:
        return self.process

    @property
    def control_variate(self) -> ValueFunction:
        return self.value


def lookahead_policy(
    process: Process,
    network: Network,
    kernels: KernelChoice,
    made_for: Process | None = None,
    refinements: int = REFINEMENTS,
) -> Lookahead:
    """Lookahead on the network's value, in the process or, with value kernels, in the one that carries this value.

    `made_for` is the process that the value was learned in, if it is another.
    """
    value = ValueFunction(made_for or process, network)
    if kernels == "value":
        process = process.with_value_kernels(value.continuation, refinements)
    return Lookahead(process, value)
