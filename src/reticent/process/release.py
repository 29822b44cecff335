"""The release process: pure `init` and `step`.

The contract, one test each in tests/process/test_release.py:
- a release costs C_T, the stop costs lambda (1 - max_u beta(u)) and terminates;
- under "penalty" the release that lands in F (max_s beta(s) >= L_B) costs C_T + C_B and terminates, violated;
- an infinite C_B means inadmissible: a sensor with any reading that may land in F is not allowed;
- under "mask" a sensor with m + I_a(beta) >= L_MI is not allowed, so the ledger m stays below the limit;
- under "paper" nothing terminates but the stop. Confidence: a release FROM F costs C_B, in place of C_T.
  Information: a release that leaves m >= L_MI costs C_MI on top of C_T;
- after `horizon` releases the episode is truncated, which is not termination: no stop cost is charged.
"""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from reticent.belief.bayes import correct, normalise, secret_joint, secret_marginal, useful_joint, useful_marginal
from reticent.belief.information import secret_information_bits
from reticent.problem.bound import ConfidenceBound
from reticent.problem.task import Enforcement, Task
from reticent.types import (
    Allowed,
    Array,
    Belief,
    Channel,
    Flag,
    Index,
    Mechanism,
    PerSensor,
    PRNGKey,
    Scalar,
)

# Beliefs are sums of a few products: their rounding errors stay far below this.
ROUNDING = 1e-12


class PublicState(eqx.Module):
    """All that a policy may see. The hidden pair is not in it, so no policy can leak what it was not told."""

    belief: Belief
    spent_bits: Scalar
    allowed: Allowed


class ReleaseState(eqx.Module):
    """Belief, information ledger and step count, with the hidden pair that the readings are drawn from."""

    belief: Belief
    spent_bits: Scalar
    step: Index
    secret: Index
    useful: Index


class Transition(eqx.Module):
    """What one action did. `violated`: the new state is over the bound. `symbol` is -1 after the stop."""

    state: ReleaseState
    cost: Scalar
    symbol: Index
    violated: Flag
    terminated: Flag
    truncated: Flag


class ReleaseProcess(eqx.Module):
    """The process of a task. Its numbers are array leaves: other bounds and prices do not recompile."""

    prior: Belief
    channel: Channel
    time_cost: Scalar
    error_penalty: Scalar
    violation_cost: Scalar
    limit: Scalar
    horizon: Index
    bound: Literal["confidence", "information"] = eqx.field(static=True)
    enforce: Enforcement = eqx.field(static=True)
    inadmissible: bool = eqx.field(static=True)

    def __init__(self, task: Task) -> None:
        self.prior = jnp.asarray(task.model.prior)
        self.channel = jnp.asarray(task.model.channel)
        self.time_cost = jnp.asarray(float(task.objective.time_cost))
        self.error_penalty = jnp.asarray(float(task.objective.error_penalty))
        self.violation_cost = jnp.asarray(float(task.objective.violation_cost))
        self.inadmissible = math.isinf(task.objective.violation_cost)
        self.horizon = jnp.asarray(task.horizon)
        if isinstance(task.bound, ConfidenceBound):
            self.bound, self.limit = "confidence", jnp.asarray(float(task.bound.limit))
        else:
            self.bound, self.limit = "information", jnp.asarray(float(task.bound.limit_bits))
        assert task.enforce is not None
        self.enforce = task.enforce

    @property
    def sensors(self) -> int:
        """Number of sensors; also the index of the action stop."""
        return self.channel.shape[0]

    def init(self, key: PRNGKey) -> ReleaseState:
        """A fresh episode: the hidden pair is drawn from the prior, the public belief is the prior."""
        pair = _draw(key, self.prior.reshape(-1))
        secret, useful = jnp.divmod(pair, self.prior.shape[1])
        return ReleaseState(self.prior, jnp.zeros(()), jnp.zeros((), int), secret, useful)

    def emission(self, belief: Belief, sensor: Index) -> Mechanism:
        """Law of what leaves the device when the sensor speaks: here its reading as it is, so the belief is unused."""
        del belief
        return self.channel[sensor]

    def emissions(self, belief: Belief) -> Channel:
        """`emission` of every sensor."""
        del belief
        return self.channel

    def information_bits(self, belief: Belief) -> PerSensor:
        """I_a(beta) of every sensor: as cheap in a batch as of the one that speaks, and the mask needs them all."""
        return secret_information_bits(belief, self.emissions(belief))

    def stop_cost(self, belief: Belief) -> Scalar:
        """lambda (1 - max_u beta(u)): the price of declaring now."""
        return self.error_penalty * (1 - jnp.max(useful_marginal(belief)))

    def forbidden(self, belief: Belief) -> Flag:
        """Whether the belief lies in F: max_s beta(s) >= L_B."""
        if self.bound == "confidence":
            return jnp.max(secret_marginal(belief)) >= self.limit
        return jnp.zeros((), bool)

    def may_enter_forbidden(self, belief: Belief) -> Bool[Array, "A Z"]:
        """Which symbol of which sensor can occur and lands in F. A hair inside F counts, so that rounding cannot."""
        emissions = self.emissions(belief)
        law = useful_joint(belief, emissions).sum(0)
        return (secret_joint(belief, emissions).max(0) >= (self.limit - ROUNDING) * law) & (law > 0)

    def public(self, state: ReleaseState) -> PublicState:
        """The state as a policy sees it, with the actions that it may take. Stop is always allowed."""
        sensors = jnp.ones(self.sensors, bool)
        if self.enforce == "mask":
            sensors = state.spent_bits + self.information_bits(state.belief) < self.limit
        if self.inadmissible and self.enforce == "penalty":
            sensors = sensors & ~jnp.any(self.may_enter_forbidden(state.belief), axis=1)
        return PublicState(state.belief, state.spent_bits, jnp.append(sensors, True))

    def step(self, key: PRNGKey, state: ReleaseState, action: Index) -> Transition:
        """Release one reading of the chosen sensor, or stop."""
        stop = action >= self.sensors
        sensor = jnp.minimum(action, self.sensors - 1)
        mechanism = self.emission(state.belief, sensor)
        symbol = _draw(key, mechanism[state.secret, state.useful])
        belief = normalise(correct(state.belief, mechanism, symbol))
        spent = state.spent_bits + self.information_bits(state.belief)[sensor]
        over = self.forbidden(belief) if self.bound == "confidence" else spent >= self.limit
        violated = ~stop & over
        terminated = stop | (violated & (self.enforce == "penalty"))
        step = state.step + 1
        return Transition(
            state=ReleaseState(
                belief=jnp.where(stop, state.belief, belief),
                spent_bits=jnp.where(stop, state.spent_bits, spent),
                step=jnp.where(stop, state.step, step),
                secret=state.secret,
                useful=state.useful,
            ),
            cost=jnp.where(stop, self.stop_cost(state.belief), self._release_cost(state.belief, violated)),
            symbol=jnp.where(stop, -1, symbol),
            violated=violated,
            terminated=terminated,
            truncated=~terminated & (step >= self.horizon),
        )

    def _release_cost(self, before: Belief, violated: Flag) -> Scalar:
        if self.enforce == "paper" and self.bound == "confidence":
            return jnp.where(self.forbidden(before), self.violation_cost, self.time_cost)
        return self.time_cost + jnp.where(violated, self.violation_cost, 0.0)


def _draw(key: PRNGKey, law: Float[Array, " X"]) -> Index:
    """One draw by inverse distribution function; never an outcome of probability zero."""
    cumulative = jnp.cumsum(law)
    return jnp.sum(cumulative <= jax.random.uniform(key) * cumulative[-1])
