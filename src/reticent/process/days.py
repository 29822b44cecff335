"""Days of a process that goes on: what was sent step by step, and what was hidden behind it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.guard.ongoing import OngoingState
from reticent.guard.panel import chances_of
from reticent.process.ongoing import OngoingProcess
from reticent.process.process import Refusal, State
from reticent.process.rollout import Act, decide, rule_behind
from reticent.types import Index, PRNGKey

# Days that are played side by side: what they compute must stay in the cache.
SIDE_BY_SIDE = 16


class Day(eqx.Module):
    """Each step T of some days N, [N T].

    `symbol` is what was sent, a reading or one of the merged symbols after them; in silence it means nothing.
    `chances` is the public rule behind it: the chance of each reading to be sent as this symbol, None where readings
    are sent as they are. `likelihood` is that of what was sent, q(y | a, ., .), and one everywhere in silence, and
    `panel` that of each of the further providers for whom the bound is kept, where there are any. `locked`: no sensor
    was allowed. `bits` is I(S_t; Y_t) of what was sent, `headroom` and `open_moments` are those before the step.
    """

    action: Int[Any, "*N"]
    symbol: Int[Any, "*N"]
    chances: Float[Any, "*N Z"] | None
    sent: Bool[Any, "*N"]
    locked: Bool[Any, "*N"]
    cost: Float[Any, "*N"]
    likelihood: Float[Any, "*N S U"]
    secret: Int[Any, "*N"]
    useful: Int[Any, "*N"]
    headroom: Float[Any, "*N"]
    open_moments: Float[Any, "*N"]
    bits: Float[Any, "*N"]
    refusal: Refusal
    panel: Float[Any, "*N P S U"] | None


def play_days(process: OngoingProcess, act: Act, days: int, seed: int) -> Day:
    """`days` independent days of the process's horizon, as numpy arrays. Deterministic given the seed.

    An action that is not allowed, or a reading that the model calls impossible, is an `InputError`.
    """
    keys = jax.random.split(jax.random.key(seed), days)
    played = jax.device_get(_days(process, act, keys, int(process.horizon)))
    played.refusal.raise_first(process.sensors)
    return jax.tree.map(np.asarray, played)


@eqx.filter_jit
def _days(process: OngoingProcess, act: Act, keys: PRNGKey, steps: int) -> Day:
    def one(state: State, key: PRNGKey) -> tuple[State, Day]:
        act_key, step_key = jax.random.split(key)
        return _step(process, act, act_key, step_key, state)

    def day(key: PRNGKey) -> Day:
        first_key, key = jax.random.split(key)
        return jax.lax.scan(one, process.init(first_key), jax.random.split(key, steps))[1]

    return jax.lax.map(day, keys, batch_size=SIDE_BY_SIDE)


def _step(process: OngoingProcess, act: Act, act_key: PRNGKey, step_key: PRNGKey, state: State) -> tuple[State, Day]:
    public = state.public
    action = decide(act, act_key, public)
    transition = process.step(step_key, state, action)
    refusal = transition.refusal
    sent = (action < process.sensors) & ~(refusal.forbidden | refusal.impossible)
    sensor = jnp.clip(action, 0, process.sensors - 1)
    symbol = transition.symbol
    likelihood = process.emissions(public)[sensor, :, :, symbol]
    return transition.state, Day(
        action=action,
        symbol=symbol,
        chances=rule_behind(process, public, sensor, symbol),
        sent=sent,
        locked=~public.allowed[:-1].any(),
        cost=transition.cost,
        likelihood=jnp.where(sent, likelihood, 1.0),
        secret=state.secret,
        useful=state.useful,
        headroom=public.headroom,
        open_moments=jnp.asarray(public.open_moments, float),
        bits=jnp.where(sent, process.prospect(public).bits_of(sensor), 0.0),
        refusal=refusal,
        panel=None if process.panel is None else jnp.where(sent, _of_panel(process, public, sensor, symbol), 1.0),
    )


def _of_panel(process: OngoingProcess, public: OngoingState, sensor: Index, symbol: Index) -> Float[Any, "P S U"]:
    """The likelihood of what was sent, by each provider of the panel."""
    assert process.panel is not None
    return process.panel.channel[:, sensor] @ chances_of(process.channel, public.kernels, sensor, symbol)
