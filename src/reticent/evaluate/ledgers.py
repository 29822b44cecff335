"""The two ledgers of information: of the sensor that was taken, and averaged over the policy (paper, theorem 3).

    taken     sum_t I_{a_t}(beta_t)
    averaged  sum_t sum_a pi(a | beta_t) I_a(beta_t)

They have the same mean: given the belief, the second is the expectation of the first, as long as the moment of the stop
is counted, where the first adds nothing. Along one path they differ, and so do the episodes that reach a limit.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.errors import InputError
from reticent.evaluate.estimate import Estimate, mean, rate
from reticent.policy.actor import Actor
from reticent.process.process import Process, State
from reticent.types import Array, Flag, PRNGKey, Scalar


@dataclass(frozen=True)
class Averaged:
    """The ledger of theorem 3 over simulated episodes: its mean at the end, and the share that reached the limit."""

    averaged_bits: Estimate
    averaged_violation_rate: Estimate


def averaged(process: Process, policy: Actor, episodes: int, seed: int) -> Averaged:
    """What the ledger of theorem 3 says of a policy under a bound on the information spent."""
    if not process.bound.on_spending:
        raise InputError("Only a bound on the information spent has a ledger: take Information(bits).")
    _, bits = ledgers(process, policy, episodes, seed)
    return Averaged(mean(bits), rate(bits >= float(process.bound.number)))


def ledgers(process: Process, policy: Actor, episodes: int, seed: int) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """Both ledgers at the end of each episode: of the sensor taken, and averaged."""
    keys = jax.random.split(jax.random.key(seed), episodes)
    taken, said = jax.device_get(_play(process, policy, keys))
    return taken, said


@eqx.filter_jit
def _play(process: Process, policy: Actor, keys: PRNGKey) -> tuple[Array, Array]:
    return jax.lax.map(lambda key: _episode(process, policy, key), keys, batch_size=256)


def _episode(process: Process, policy: Actor, key: PRNGKey) -> tuple[Scalar, Scalar]:
    begin_key, key = jax.random.split(key)

    def one(carry: tuple[State, Scalar, Flag, PRNGKey]) -> tuple[State, Scalar, Flag, PRNGKey]:
        state, said, _, key = carry
        act_key, step_key, key = jax.random.split(key, 3)
        public = state.public
        assert public.bits is not None
        expected = jnp.sum(policy.probabilities(public)[:-1] * public.bits)
        transition = process.step(step_key, state, policy.act(act_key, public))
        return transition.state, said + expected, transition.terminated | transition.truncated, key

    start = (process.init(begin_key), jnp.zeros(()), jnp.zeros((), bool), key)
    state, said, _, _ = jax.lax.while_loop(lambda carry: ~carry[2], one, start)
    return state.public.spent_bits, said
