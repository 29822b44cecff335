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
- an action that is not allowed is refused under every enforcement, and so is a reading of probability zero;
- after `horizon` releases the episode is truncated, which is not termination: no stop cost is charged.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from reticent.belief.bayes import posteriors, secret_joint, secret_marginal, update, useful_joint
from reticent.belief.information import information_bits, secret_information_bits
from reticent.errors import InputError
from reticent.problem.merging import LEAST_MOVE, NEAREST, REFINEMENTS
from reticent.problem.task import Task
from reticent.process.guarantee import Coarsen, Labels, Rule, Safety, Withhold, emitted, movement
from reticent.process.process import Process, PublicState, Refusal, State, Transition
from reticent.process.recorded import Recorded, draw
from reticent.process.value_kernels import CostToGo, ValueKernels
from reticent.types import Array, Belief, Channel, Index, Kernels, PerSensor, PRNGKey, Scalar

# Beliefs are sums of a few products: their rounding errors stay far below this.
ROUNDING = 1e-12


class ReleaseState(State):
    """The public state, the step count, and the hidden pair that the readings are drawn from."""

    public: PublicState
    step: Index
    secret: Index
    useful: Index
    row: Index | None


class Outlook(eqx.Module):
    """One release of each sensor, for every symbol it may send: how likely, what it costs, where it leads."""

    law: Float[Array, "A Y"]
    belief: Float[Array, "A Y S U"]
    spent_bits: PerSensor
    cost: Float[Array, "A Y"]
    ended: Bool[Array, "A Y"]


class ReleaseProcess(Process):
    """The process of a task with a finite model: exact belief, exact information, and the guarantee.

    What the sensors say is drawn from the model, from another channel (the `truth`), or `recorded`.
    """

    channel: Channel
    rule: Rule | None
    # Of the prior, where every episode starts: solved once, not at every restart.
    first_kernels: Kernels | None
    recorded: Recorded | None
    truth: Channel | None

    def __init__(self, task: Task) -> None:
        if task.enforce == "answer":
            raise InputError("Under enforce='answer' no readings are released, so there is no release process.")
        assert task.enforce is not None
        super().__init__(jnp.asarray(task.model.prior), task.bound, task.objective, task.enforce, task.horizon)
        self.channel = jnp.asarray(task.model.channel)
        self.rule = {"withhold": Withhold(), "coarsen": Coarsen()}.get(task.enforce)
        self.first_kernels = _kernels(self.rule, self.prior, self.channel, self.limit)
        self.recorded = None
        self.truth = None

    def replaying(self, recorded: Recorded) -> "ReleaseProcess":
        """The process in which sensors say what they said to people, and the belief is still the model's.

        The guarantee holds for the model's belief, whatever was recorded. What somebody with a better model comes to
        believe is for an audit to find out.
        """
        return eqx.tree_at(lambda p: p.recorded, self, recorded, is_leaf=lambda x: x is None)

    def with_truth(self, channel: Float[np.ndarray, "A S U Z"]) -> "ReleaseProcess":
        """The process in which sensors follow this channel, and the belief is still the model's.

        Whatever a sensor can say of a pair, the model must call possible: its belief could not account for it.
        """
        if self.recorded is not None:
            raise InputError("The readings are recorded ones: no other channel can draw them.")
        if channel.shape != self.channel.shape:
            raise InputError(f"The true channel must have the model's shape {self.channel.shape}, not {channel.shape}.")
        if (channel < 0).any() or not np.allclose(channel.sum(-1), 1.0, rtol=0, atol=ROUNDING):
            raise InputError("Every row of the true channel must hold probabilities that sum to one.")
        possible = np.asarray(self.channel) > 0
        if ((channel > 0) & ~possible & (np.asarray(self.prior) > 0)[None, :, :, None]).any():
            raise InputError("The true channel gives readings of a pair that the model calls impossible for this pair.")
        return eqx.tree_at(lambda p: p.truth, self, jnp.asarray(channel), is_leaf=lambda x: x is None)

    def with_value_kernels(self, going_on: CostToGo, refinements: int = REFINEMENTS) -> "ReleaseProcess":
        """The process whose merged symbols carry what going on is worth, instead of labels only."""
        assert isinstance(self.rule, Labels)
        rule = ValueKernels(self.rule, going_on, self.error_penalty, refinements)
        first_kernels = _kernels(rule, self.prior, self.channel, self.limit)
        return eqx.tree_at(
            lambda p: (p.rule, p.first_kernels), self, (rule, first_kernels), is_leaf=lambda x: isinstance(x, Rule)
        )

    @property
    def sensors(self) -> int:
        return self.channel.shape[0]

    def init(self, key: PRNGKey) -> ReleaseState:
        """A fresh episode: the hidden pair is drawn from the prior, the public belief is the prior."""
        if self.recorded is None:
            pair, row = draw(key, self.prior.reshape(-1)), None
        else:
            key, row_key = jax.random.split(key)
            pair = draw(key, self.prior.reshape(-1))
            row = self.recorded.episodes.begin(row_key, pair)
        secret, useful = jnp.divmod(pair, self.prior.shape[1])
        public = self._public(self.prior, jnp.zeros(()), self.first_kernels)
        return ReleaseState(public, jnp.zeros((), int), secret, useful, row)

    def resume(self, key: PRNGKey, public: PublicState, secret: Index) -> ReleaseState:
        """An episode that starts at this public state with this secret; U is drawn from the belief given the secret."""
        # A recorded episode is somebody else's each time.
        assert self.recorded is None
        useful = draw(key, public.belief[secret])
        return ReleaseState(public, jnp.zeros((), int), secret, useful, None)

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
        return _sent(self.channel, public.kernels)

    def may_enter_forbidden(self, belief: Belief) -> Bool[Array, "A Z"]:
        """Which symbol of which sensor can occur and lands in F. Beliefs within ROUNDING of F count as inside it."""
        law = useful_joint(belief, self.channel).sum(0)
        return (secret_joint(belief, self.channel).max(0) >= (self.limit - ROUNDING) * law) & (law > 0)

    def outlook(self, public: PublicState) -> Outlook:
        """Everything that one release of each sensor can lead to."""
        emissions = self.emissions(public)
        law, belief = jax.vmap(posteriors, (None, 0))(public.belief, emissions)
        spent = public.spent_bits + secret_information_bits(public.belief, emissions)
        if self.bound == "information":
            violated = jnp.repeat((spent >= self.limit)[:, None], law.shape[1], axis=1)
        else:
            violated = jax.vmap(jax.vmap(self.forbidden))(belief)
        cost = jax.vmap(jax.vmap(lambda over: self.release_cost(public.belief, over)))(violated)
        return Outlook(law, belief, spent, cost, violated & (self.enforce == "penalty"))

    def _carry_out(self, key: PRNGKey, state: ReleaseState, action: Index) -> Transition:
        sensor, kernels = jnp.minimum(action, self.sensors - 1), state.public.kernels
        if self.recorded is None:
            speaking = self.channel if self.truth is None else self.truth
            symbol = draw(key, _sent(speaking, kernels)[sensor, state.secret, state.useful])
        else:
            assert state.row is not None
            symbol = self.recorded.symbol(key, state.row, sensor, kernels)
        return self._after(state, action, symbol)

    def _after(self, state: ReleaseState, action: Index, symbol: Index) -> Transition:
        """What follows when the chosen sensor sends this symbol, or from stopping, whatever the symbol."""
        sensor = jnp.minimum(action, self.sensors - 1)
        before = state.public
        emissions = self.emissions(before)
        belief, possible = update(before.belief, emissions[sensor, :, :, symbol])
        impossible = (action < self.sensors) & ~possible
        stop = (action >= self.sensors) | impossible
        # Only that of the sensor that spoke: logarithms are most of the cost of a step.
        said = information_bits(secret_marginal(before.belief), secret_joint(before.belief, emissions)[:, sensor])
        spent = before.spent_bits + said
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
                row=None if state.row is None else state.row + 1,
            ),
            cost=jnp.where(stop, self.stop_cost(before.belief), self.release_cost(before.belief, violated)),
            symbol=jnp.where(stop, -1, symbol),
            violated=violated,
            terminated=terminated,
            truncated=~terminated & (step >= self.horizon),
            refusal=Refusal(jnp.zeros((), bool), impossible, state.step, action, symbol),
        )


def _sent(channel: Channel, kernels: Kernels | None) -> Float[Array, "A S U Y"]:
    """Law of what leaves the device where the sensors follow this channel."""
    return channel if kernels is None else emitted(channel, kernels)


@eqx.filter_jit
def _kernels(rule: Rule | None, belief: Belief, channel: Channel, limit: Scalar) -> Kernels | None:
    """What a rule sends in place of readings at a belief; nothing is replaced without a rule."""
    return None if rule is None else rule.kernels(Safety(belief, channel, limit))
