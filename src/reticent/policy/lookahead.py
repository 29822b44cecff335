"""Acting greedily on a value function: one step ahead exactly, then what was learned."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from reticent.policy.network import Network, describe
from reticent.policy.policy import Policy, best
from reticent.process.release import PublicState, ReleaseProcess
from reticent.process.value_kernels import REFINEMENTS
from reticent.types import Belief, Index, PerSensor, PRNGKey, Scalar

KernelChoice = Literal["label", "value"]


class ValueFunction(eqx.Module):
    """V(beta, m) = min(stop cost, cost of going on): the stop is exact, only going on is learned.

    Under "multiplier" only what comes on top of the bits said so far is learned, which stays in the range of the plain
    stop cost: so the network keeps up while the price of a bit changes.
    """

    process: ReleaseProcess
    network: Network

    def __call__(self, belief: Belief, spent_bits: Scalar) -> Scalar:
        return jnp.minimum(self.process.stop_cost(belief), self.going_on(belief, spent_bits))

    def going_on(self, belief: Belief, spent_bits: Scalar) -> Scalar:
        """Learned cost of releasing at least once more and acting well from then on."""
        seen = describe(belief, self.process.used(belief, spent_bits))
        learned = self.process.error_penalty * self.network(seen)[0].astype(belief.dtype)
        return learned + self.process.leakage_cost(belief) if self.process.enforce == "multiplier" else learned


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
