"""Acting greedily on a value function: one step ahead exactly, then what was learned."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from reticent.belief.bayes import secret_marginal, useful_marginal
from reticent.policy.network import Network, describe
from reticent.policy.policy import Policy, best
from reticent.process.release import PublicState, ReleaseProcess
from reticent.process.value_kernels import REFINEMENTS
from reticent.types import Belief, Index, PerSensor, PRNGKey, Scalar

KernelChoice = Literal["label", "value"]


class ValueFunction(eqx.Module):
    """V(beta, m) = min(stop cost, cost of going on): the stop is exact, only going on is learned."""

    network: Network
    error_penalty: Scalar
    limit: Scalar
    bound: Literal["confidence", "information"] = eqx.field(static=True)

    def __init__(self, process: ReleaseProcess, network: Network) -> None:
        self.network, self.error_penalty = network, process.error_penalty
        self.limit, self.bound = process.limit, process.bound

    def __call__(self, belief: Belief, spent_bits: Scalar) -> Scalar:
        stop = self.error_penalty * (1 - jnp.max(useful_marginal(belief)))
        return jnp.minimum(stop, self.going_on(belief, spent_bits))

    def going_on(self, belief: Belief, spent_bits: Scalar) -> Scalar:
        """Learned cost of releasing at least once more and acting well from then on."""
        used = (spent_bits if self.bound == "information" else jnp.max(secret_marginal(belief))) / self.limit
        return self.error_penalty * self.network(describe(belief, used))[0].astype(belief.dtype)


def going_on_costs(process: ReleaseProcess, value: ValueFunction, public: PublicState) -> PerSensor:
    """Q_a = sum_y p(y) (cost + V(beta_y, m_a)), infinite for a sensor that is not allowed."""
    look = process.outlook(public)
    after = jax.vmap(jax.vmap(value, (0, None)))(look.belief, look.spent_bits)
    costs = jnp.sum(look.law * (look.cost + jnp.where(look.ended, 0.0, after)), axis=1)
    return jnp.where(public.allowed[:-1], costs, jnp.inf)


class Lookahead(Policy):
    """The sensor of the lowest one-step cost to go; stops when stopping is no dearer."""

    process: ReleaseProcess
    value: ValueFunction

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        del key
        costs = going_on_costs(self.process, self.value, public)
        return best(public, -costs, self.process.stop_cost(public.belief) <= jnp.min(costs))


def lookahead_policy(
    process: ReleaseProcess, network: Network, kernels: KernelChoice, refinements: int = REFINEMENTS
) -> Lookahead:
    """Lookahead on the network's value, in the process or, with value kernels, in the one that carries this value."""
    value = ValueFunction(process, network)
    if kernels == "value":
        process = process.with_value_kernels(value.going_on, refinements)
    return Lookahead(process, value)
