"""The release process: pure `init` and `step`.

The contract, one test each in tests/process/test_release.py:
- a release costs C_T, the stop costs lambda (1 - max_u beta(u)) and terminates;
- under "penalty" the release that lands in F (max_s beta(s) >= L_B) costs C_T + C_B and terminates, violated;
- an infinite C_B means inadmissible: a sensor with any reading that may land in F is not allowed;
- under "withhold" and "coarsen" what is sent in place of a reading never lands in F, and a sensor that could not
  move the belief is not allowed;
- under "mask" a sensor with m + I_a(beta) >= L_MI is not allowed, so the ledger m stays below the limit;
- under "multiplier" nothing is forbidden, and the stop costs mu (H_0 - H(beta_S)) on top: what was said about the
  secret, at mu per bit. On average over episodes that difference is the ledger (chain rule);
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
from reticent.belief.information import entropy_bits, secret_information_bits
from reticent.errors import InputError
from reticent.problem.bound import ConfidenceBound, InformationBound
from reticent.problem.task import Enforcement, Task
from reticent.process.guarantee import (
    LEAST_MOVE,
    NEAREST,
    Coarsen,
    Labels,
    Rule,
    Safety,
    Withhold,
    emitted,
    movement,
)
from reticent.process.value_kernels import REFINEMENTS, CostToGo, ValueKernels
from reticent.types import (
    Allowed,
    Array,
    Belief,
    Channel,
    Flag,
    Index,
    Kernels,
    PerSensor,
    PRNGKey,
    Scalar,
)

# Beliefs are sums of a few products: their rounding errors stay far below this.
ROUNDING = 1e-12


class PublicState(eqx.Module):
    """All that a policy may see. The hidden pair is not in it, so no policy can leak what it was not told.

    `kernels`, under a guarantee, say what each sensor would send in place of its readings: a public rule.
    """

    belief: Belief
    spent_bits: Scalar
    allowed: Allowed
    kernels: Kernels | None


class ReleaseState(eqx.Module):
    """The public state, the step count, and the hidden pair that the readings are drawn from."""

    public: PublicState
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


class Outlook(eqx.Module):
    """One release of each sensor, for every symbol it may send: how likely, what it costs, where it leads."""

    law: Float[Array, "A Y"]
    belief: Float[Array, "A Y S U"]
    spent_bits: PerSensor
    cost: Float[Array, "A Y"]
    ended: Bool[Array, "A Y"]


class ReleaseProcess(eqx.Module):
    """The process of a task. Its numbers are array leaves: other bounds and prices do not recompile."""

    prior: Belief
    channel: Channel
    time_cost: Scalar
    error_penalty: Scalar
    violation_cost: Scalar
    limit: Scalar
    # Price of a bit about the secret at the stop; zero but under "multiplier".
    multiplier: Scalar
    horizon: Index
    bound: Literal["confidence", "information", "expected"] = eqx.field(static=True)
    enforce: Enforcement = eqx.field(static=True)
    inadmissible: bool = eqx.field(static=True)
    rule: Rule | None
    # Of the prior, where every episode starts: solved once, not at every restart.
    first_kernels: Kernels | None

    def __init__(self, task: Task) -> None:
        if task.enforce == "answer":
            raise InputError("Under enforce='answer' no readings are released, so there is no release process.")
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
            self.bound = "information" if isinstance(task.bound, InformationBound) else "expected"
            self.limit = jnp.asarray(float(task.bound.limit_bits))
        self.multiplier = jnp.zeros(())
        assert task.enforce is not None
        self.enforce = task.enforce
        self.rule = {"withhold": Withhold(), "coarsen": Coarsen()}.get(task.enforce)
        self.first_kernels = _kernels(self.rule, self.prior, self.channel, self.limit)

    def with_value_kernels(self, going_on: CostToGo, refinements: int = REFINEMENTS) -> "ReleaseProcess":
        """The process whose merged symbols carry what going on is worth, instead of labels only."""
        assert isinstance(self.rule, Labels)
        rule = ValueKernels(self.rule, going_on, self.error_penalty, refinements)
        first_kernels = _kernels(rule, self.prior, self.channel, self.limit)
        return eqx.tree_at(
            lambda p: (p.rule, p.first_kernels), self, (rule, first_kernels), is_leaf=lambda x: isinstance(x, Rule)
        )

    def with_multiplier(self, multiplier: Scalar) -> "ReleaseProcess":
        """The process in which a bit about the secret has this price at the stop."""
        assert self.enforce == "multiplier"
        return eqx.tree_at(lambda p: p.multiplier, self, multiplier)

    @property
    def sensors(self) -> int:
        """Number of sensors; also the index of the action stop."""
        return self.channel.shape[0]

    def init(self, key: PRNGKey) -> ReleaseState:
        """A fresh episode: the hidden pair is drawn from the prior, the public belief is the prior."""
        pair = _draw(key, self.prior.reshape(-1))
        secret, useful = jnp.divmod(pair, self.prior.shape[1])
        public = self._public(self.prior, jnp.zeros(()), self.first_kernels)
        return ReleaseState(public, jnp.zeros((), int), secret, useful)

    def public(self, belief: Belief, spent_bits: Scalar) -> PublicState:
        """The public state at a belief, with the actions that a policy may take. Stop is always allowed."""
        return self._public(belief, spent_bits, _kernels(self.rule, belief, self.channel, self.limit))

    def _public(self, belief: Belief, spent_bits: Scalar, kernels: Kernels | None) -> PublicState:
        sensors = jnp.ones(self.sensors, bool)
        if kernels is not None:
            near = self.limit - jnp.max(secret_marginal(belief)) < NEAREST
            sensors = (movement(belief, emitted(self.channel, kernels)) > LEAST_MOVE) & ~near
        if self.enforce == "mask":
            sensors = spent_bits + secret_information_bits(belief, self.channel) < self.limit
        if self.inadmissible and self.enforce == "penalty":
            sensors = sensors & ~jnp.any(self.may_enter_forbidden(belief), axis=1)
        return PublicState(belief, spent_bits, jnp.append(sensors, True), kernels)

    def emissions(self, public: PublicState) -> Float[Array, "A S U Y"]:
        """Law of what leaves the device when each sensor speaks: its readings, or what is sent in their place."""
        return self.channel if public.kernels is None else emitted(self.channel, public.kernels)

    def stop_cost(self, belief: Belief) -> Scalar:
        """lambda (1 - max_u beta(u)): the price of declaring now; under "multiplier", of what was said as well."""
        plain = self.error_penalty * (1 - jnp.max(useful_marginal(belief)))
        return plain + self.leakage_cost(belief) if self.enforce == "multiplier" else plain

    def leakage_cost(self, belief: Belief) -> Scalar:
        """mu (H_0 - H(beta_S)), with H_0 the prior's: below zero where the secret is less sure than at first."""
        return self.multiplier * self.said_bits(belief)

    def said_bits(self, belief: Belief) -> Scalar:
        """H_0 - H(beta_S): what was said about the secret by now, on average over all that leads to such beliefs."""
        return entropy_bits(secret_marginal(self.prior)) - entropy_bits(secret_marginal(belief))

    def forbidden(self, belief: Belief) -> Flag:
        """Whether the belief lies in F: max_s beta(s) >= L_B."""
        if self.bound == "confidence":
            return jnp.max(secret_marginal(belief)) >= self.limit
        return jnp.zeros((), bool)

    def used(self, belief: Belief, spent_bits: Scalar) -> Scalar:
        """Share of the bound that is used up. On average over episodes it is what was said by their end that counts."""
        if self.bound == "information":
            return spent_bits / self.limit
        return (jnp.max(secret_marginal(belief)) if self.bound == "confidence" else self.said_bits(belief)) / self.limit

    def may_enter_forbidden(self, belief: Belief) -> Bool[Array, "A Z"]:
        """Which symbol of which sensor can occur and lands in F. A hair inside F counts, so that rounding cannot."""
        law = useful_joint(belief, self.channel).sum(0)
        return (secret_joint(belief, self.channel).max(0) >= (self.limit - ROUNDING) * law) & (law > 0)

    def outlook(self, public: PublicState) -> Outlook:
        """Everything that one release of each sensor can lead to."""
        emissions = self.emissions(public)
        joint = jnp.moveaxis(public.belief[None, :, :, None] * emissions, -1, 1)
        law = joint.sum((2, 3))
        belief = joint / jnp.where(law > 0, law, 1.0)[:, :, None, None]
        spent = public.spent_bits + secret_information_bits(public.belief, emissions)
        if self.bound == "information":
            violated = jnp.repeat((spent >= self.limit)[:, None], law.shape[1], axis=1)
        else:
            violated = jax.vmap(jax.vmap(self.forbidden))(belief)
        cost = jax.vmap(jax.vmap(lambda over: self._release_cost(public.belief, over)))(violated)
        return Outlook(law, belief, spent, cost, violated & (self.enforce == "penalty"))

    def step(self, key: PRNGKey, state: ReleaseState, action: Index) -> Transition:
        """Release one reading of the chosen sensor, or stop."""
        stop = action >= self.sensors
        sensor = jnp.minimum(action, self.sensors - 1)
        before = state.public
        emissions = self.emissions(before)
        symbol = _draw(key, emissions[sensor, state.secret, state.useful])
        belief = normalise(correct(before.belief, emissions[sensor], symbol))
        spent = before.spent_bits + secret_information_bits(before.belief, emissions)[sensor]
        over = spent >= self.limit if self.bound == "information" else self.forbidden(belief)
        violated = ~stop & over
        terminated = stop | (violated & (self.enforce == "penalty"))
        step = state.step + 1
        after = self.public(belief, spent)
        return Transition(
            state=ReleaseState(
                public=jax.tree.map(lambda old, new: jnp.where(stop, old, new), before, after),
                step=jnp.where(stop, state.step, step),
                secret=state.secret,
                useful=state.useful,
            ),
            cost=jnp.where(stop, self.stop_cost(before.belief), self._release_cost(before.belief, violated)),
            symbol=jnp.where(stop, -1, symbol),
            violated=violated,
            terminated=terminated,
            truncated=~terminated & (step >= self.horizon),
        )

    def _release_cost(self, before: Belief, violated: Flag) -> Scalar:
        if self.enforce == "paper" and self.bound == "confidence":
            return jnp.where(self.forbidden(before), self.violation_cost, self.time_cost)
        return self.time_cost + jnp.where(violated, self.violation_cost, 0.0)


@eqx.filter_jit
def _kernels(rule: Rule | None, belief: Belief, channel: Channel, limit: Scalar) -> Kernels | None:
    """What a rule sends in place of readings at a belief; nothing is replaced without a rule."""
    return None if rule is None else rule.kernels(Safety(belief, channel, limit))


def _draw(key: PRNGKey, law: Float[Array, " X"]) -> Index:
    """One draw by inverse distribution function; never an outcome of probability zero."""
    cumulative = jnp.cumsum(law)
    return jnp.sum(cumulative <= jax.random.uniform(key) * cumulative[-1])
