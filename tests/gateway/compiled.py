"""Play of the compiled process and policy, for the numpy runtime to follow."""

import equinox as eqx
import jax
import numpy as np

from reticent.policy.saved import policy_of
from reticent.policy.store import PolicyFile
from reticent.process.rollout import advance_lane, begin_lane
from tests.gateway.following import Play


def play(file: PolicyFile, lanes: int, steps: int, seed: int = 0) -> Play:
    """Whole episodes one after the other in every lane."""
    process, policy = policy_of(file)
    public, step, sent = jax.device_get(_play(process, policy, jax.random.key(seed), lanes, steps + 1))
    # The last step of each lane leads to a state that was not recorded.
    now, later = slice(None, -1), slice(1, None)
    return Play(
        belief=public.belief[:, now],
        spent_bits=public.spent_bits[:, now],
        kernels=np.zeros(0) if public.kernels is None else public.kernels[:, now],
        action=sent.action[:, now],
        symbol=sent.symbol[:, now],
        after=public.belief[:, later],
        spent_after=public.spent_bits[:, later],
        goes_on=(step[:, later] > 0) & (sent.symbol[:, now] >= 0),
    )


@eqx.filter_jit
def _play(process, policy, key, lanes: int, steps: int):
    def one(lane, _):
        on, sent = advance_lane(process, policy.act, lane)
        return on, (lane.state.public, lane.state.step, sent)

    def lane(key):
        return jax.lax.scan(one, begin_lane(process, key, 1), None, length=steps)[1]

    return jax.vmap(lane)(jax.random.split(key, lanes))
