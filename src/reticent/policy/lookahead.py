"""Acting greedily on a value function: one step ahead exactly, then what was learned."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.belief.bayes import secret_joint, useful_joint
from reticent.policy.network import Network, describe
from reticent.policy.policy import Policy, best
from reticent.policy.settings import KernelChoice, described
from reticent.problem.merging import REFINEMENTS
from reticent.process.process import Process, PublicState
from reticent.types import Array, Belief, Index, PerSensor, PRNGKey, Scalar

# Outputs of a fresh network are small; this lets them reach every share with a few steps of learning.
STEEPNESS, FIRST_LOGIT = 20.0, 2.5


class ValueFunction(eqx.Module):
    """V(beta, m) = min(stop cost, cost of going on): the stop is exact, only going on is learned.

    Where crossing ends the episode, V jumps with every symbol that starts to land in F. So the next release is exact,
    too, and what is learned, for each sensor, is which share of the stop cost that it leaves is still paid in the end:

        Q_a = C_T + C_B P(F | beta, a) + share_a E[stop cost; not F | beta, a],    going on = min_a Q_a.

    Where bits have a price, only what comes on top of the bits said so far is learned, which stays in the range of the
    plain stop cost: so the network keeps up while the price of a bit changes.
    """

    process: Process
    network: Network

    def __call__(self, belief: Belief, spent_bits: Scalar) -> Scalar:
        return jnp.minimum(self.process.stop_cost(belief), self.going_on(belief, spent_bits))

    def going_on(self, belief: Belief, spent_bits: Scalar) -> Scalar:
        """Learned cost of releasing at least once more and acting well from then on."""
        return jnp.min(self.each(belief, spent_bits))

    def each(self, belief: Belief, spent_bits: Scalar) -> Float[Array, " O"]:
        """The learned costs whose least is that of going on: of each sensor, or only that one."""
        process = self.process
        learned = self.network(describe(belief, process.used(belief, spent_bits)))
        if process.enforcement.ends_on_crossing:
            return _by_sensor(process, belief, learned).astype(belief.dtype)
        costs = process.objective.error_penalty * learned.astype(belief.dtype)
        return costs + process.leakage_cost(belief) if process.enforcement.priced else costs


def value_network(process: Process, width: int, key: PRNGKey) -> Network:
    """A fresh network of the sizes that a value function of this process has.

    It says half the stop cost at the prior everywhere; where crossing ends the episode nearly the cost of one release
    and then the stop, from which iteration comes down faster than it would come up from too low a value.
    """
    network = Network(described(*process.prior.shape), outputs(process), width, key)
    half = process.stop_cost(process.prior) / process.objective.error_penalty / 2
    start = FIRST_LOGIT / STEEPNESS if process.enforcement.ends_on_crossing else half
    return eqx.tree_at(lambda n: n.layers[-1].bias, network, jnp.full(outputs(process), start, jnp.float32))


def outputs(process: Process) -> int:
    """How many numbers a value function of this process learns at a belief."""
    return process.sensors if process.enforcement.ends_on_crossing else 1


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


def going_on_costs(process: Process, value: ValueFunction, public: PublicState) -> PerSensor:
    """Q_a = sum_y p(y) (cost + V(beta_y, m_a)), infinite for a sensor that is not allowed."""
    look = process.outlook(public)
    after = jax.vmap(jax.vmap(value, (0, None)))(look.belief, look.spent_bits)
    costs = jnp.sum(look.law * (look.cost + jnp.where(look.ended, 0.0, after)), axis=1)
    return jnp.where(public.allowed[:-1], costs, jnp.inf)


class Lookahead(Policy):
    """The sensor of the lowest one-step cost to go; stops when stopping is no dearer."""

    process: Process
    value: ValueFunction

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        del key
        costs = going_on_costs(self.process, self.value, public)
        return best(public, -costs, self.process.stop_cost(public.belief) <= jnp.min(costs))


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
        process = process.with_value_kernels(value.going_on, refinements)
    return Lookahead(process, value)
