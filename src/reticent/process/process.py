"""The process: a public belief moves, a policy chooses, a bound holds. Pure `init` and `step`.

A process is a source (what the sensors really say), a filter (what the provider makes of it), and a bound with its
enforcement. The contract, one test each in tests/process/test_process.py:
- a release costs C_T, the stop costs lambda (1 - max_u beta(u)) and terminates;
- under `Penalty` the release that lands in F (max_s beta(s) >= L_B) costs C_T + C_B and terminates, violated;
- under `Withhold` and `Coarsen` what is sent in place of a reading never lands in F, and a sensor that could not
  move the belief is not allowed;
- under `Mask` a sensor is not allowed whose next release may cross the bound: one with a reading that lands in F, or
  with m + I_a(beta) >= L_MI, so that the information spent m stays below the limit;
- under `Lagrangian` nothing is forbidden, and the stop costs mu (H_0 - H(beta_S)) on top: what was said about the
  secret, at mu per bit. On average over episodes that difference is the information spent (chain rule);
- under `PaperCost` nothing terminates but the stop. Confidence: a release FROM F costs C_B, in place of C_T.
  Information: a release that leaves m >= L_MI costs C_MI on top of C_T;
- an action that is not allowed is refused under every enforcement, and so is a reading of probability zero;
- after `horizon` releases the episode is truncated, which is not termination: no stop cost is charged.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float, Int

from reticent.belief.filter import ExactFilter, Filter, Memory
from reticent.belief.prospect import Joint
from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.guard.panel import Panel, chances_of, heard, told
from reticent.guard.rules import PublicState, Rules, kernels_at, public_state
from reticent.guard.value_kernels import REFINEMENTS, ContinuationValue, ValueKernels
from reticent.problem.bound import Bound
from reticent.problem.enforcement import USUAL, Enforcement, default_enforcement
from reticent.problem.objective import Objective
from reticent.problem.task import Task
from reticent.process.leaves import with_leaves
from reticent.process.source import FromChannel, FromModel, FromReadings, Hidden, Source, check_channel, draw
from reticent.types import Allowed, Array, Belief, Channel, Flag, Index, Kernels, PRNGKey, Scalar

# A `PublicState`; in a process that goes on an `OngoingState`.
Public: TypeAlias = Any


class State(eqx.Module):
    """The public state, the filter's memory behind it, the step count, and what is hidden."""

    public: Public
    memory: Memory
    step: Index
    hidden: Hidden

    @property
    def secret(self) -> Int[Array, "*N"]:
        """The hidden secret."""
        return self.hidden.secret

    @property
    def useful(self) -> Int[Array, "*N"]:
        """The hidden useful value."""
        return self.hidden.useful


class Refusal(eqx.Module):
    """Why a step was not carried out as asked; compiled play stops there, and nothing is sent.

    `forbidden`: the action is not allowed or does not exist. `impossible`: the sensor gave a reading that has
    probability zero under the model, so that no belief could account for it.
    """

    forbidden: Flag
    impossible: Flag
    step: Index
    action: Index
    symbol: Index

    @classmethod
    def none(cls) -> "Refusal":
        """That of a step that was carried out."""
        no, zero = jnp.zeros((), bool), jnp.zeros((), int)
        return cls(no, no, zero, zero, zero)

    def raise_first(self, sensors: int) -> None:
        """An `InputError` for the first refusal among these, if there is any: names step and action."""
        fields = (self.forbidden, self.impossible, self.step, self.action, self.symbol)
        forbidden, impossible, step, action, symbol = (np.ravel(np.asarray(field)) for field in fields)
        for i in np.flatnonzero(forbidden | impossible)[:1]:
            if impossible[i]:
                raise InputError(
                    f"Step {step[i]}: sensor {action[i]} gave reading {symbol[i]}, which has probability zero under "
                    "the model and the belief so far. The model does not fit this sensor: fit it again."
                )
            if not 0 <= action[i] <= sensors:
                raise InputError(
                    f"Step {step[i]}: the policy chose action {action[i]}, which is out of range 0-{sensors} "
                    f"({sensors} = stop)."
                )
            raise InputError(
                f"Step {step[i]}: the policy chose sensor {action[i]}, which is not allowed there. Choose among the "
                "actions that public.allowed marks True."
            )


class Transition(eqx.Module):
    """What one action did. `violated`: the new state is over the bound.

    `symbol` is what was sent: its index or, where readings themselves are, the row of the recordings; after a stop it
    means nothing.
    """

    state: State
    cost: Scalar
    symbol: Index
    violated: Flag
    terminated: Flag
    truncated: Flag
    refusal: Refusal


def carried_out(carry_out: Callable[[Index], Transition], allowed: Allowed, action: Index | int) -> Transition:
    """What an action did; in place of one that is not allowed the last one, which always is.

    The refusal is an `InputError` where it is known, and told by the transition within compiled code.
    """
    action, last = jnp.asarray(action, int), allowed.shape[0] - 1
    fine = (action >= 0) & (action <= last) & allowed[jnp.clip(action, 0, last)]
    transition = carry_out(jnp.where(fine, action, last))
    refusal = eqx.tree_at(lambda r: (r.forbidden, r.action), transition.refusal, (~fine, action))
    if not isinstance(refusal.forbidden | refusal.impossible, Tracer):
        refusal.raise_first(last)
    return eqx.tree_at(lambda t: t.refusal, transition, refusal)


class Kept:
    """What a process remembers and no compiled program reads: processes that differ only in it share one program."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept)

    def __hash__(self) -> int:
        return hash(Kept)


class Process(eqx.Module, Rules):
    """Source, filter, bound and enforcement: public rules that are played by. Made from a task by `Process.of(task)`.

    Numbers are array leaves: other bounds and prices do not recompile.

    Args:
        source: What the sensors really say.
        filter: What the provider makes of it.
        bound: What it may come to know at most.
        enforcement: How the bound is kept.
        objective: The prices.
        horizon: After so many releases an episode is cut off.
        task: What the process was made for, if it was.
        panel: Further providers for whom the bound is kept.

    Example:
        >>> import jax
        >>> process = rt.Process.of(rt.Task(rt.synthetic(), rt.Confidence(0.8)))
        >>> state = process.init(jax.random.key(0))
        >>> process.step(jax.random.key(1), state, process.sensors).cost.round(2)
        Array(33.33, dtype=float64)
    """

    source: Source
    filter: Filter
    bound: Bound
    enforcement: Enforcement
    objective: Objective
    horizon: Index
    panel: Panel | None
    # Every episode starts here: computed once, not at every restart.
    first: PublicState
    _task: Kept = eqx.field(static=True)

    def __init__(
        self,
        source: Source,
        filter: Filter,
        bound: Bound,
        enforcement: Enforcement,
        objective: Objective,
        horizon: int,
        task: Task | None = None,
        panel: Panel | None = None,
    ) -> None:
        if not enforcement.releases:
            raise InputError(f"Under the enforcement {enforcement.name!r} no readings are released one by one.")
        self.source, self.filter = source, filter
        self.bound, self.enforcement = with_leaves(bound), with_leaves(enforcement)
        self.objective = with_leaves(objective)
        self.horizon = jnp.asarray(horizon)
        self.panel = panel
        self.first = _first_public(self.filter, self.bound, self.enforcement, panel)
        self._task = Kept(task)

    @classmethod
    def of(cls, task: Task) -> "Process":
        """The process of a task: readings drawn from its model, exact belief."""
        exact = ExactFilter(jnp.asarray(task.model.prior), jnp.asarray(task.model.channel))
        panel = Panel.of(task.panel, jnp.asarray)
        return cls(FromModel(), exact, task.bound, task.enforcement, task.objective, task.horizon, task, panel)

    @classmethod
    def over(
        cls,
        filter: Filter,
        recorded: Readings,
        bound: Bound,
        objective: Objective = Objective(),  # noqa: B008  (frozen)
        horizon: int = 10,
        enforcement: Enforcement = USUAL,
    ) -> "Process":
        """The process over recordings, sent as they are, to a provider with this belief, exact or learned.

        Usually a confidence bound is enforced by a penalty; an information bound masks the sensors whose next reading
        would, by the filter's estimate, cross it.
        """
        if not bound.pathwise:
            raise InputError("Over recordings the bound is on confidence, or on information along every path.")
        bound.check(np.asarray(filter.prior))
        source = FromReadings.of(recorded, horizon)
        enforcement = default_enforcement(bound) if enforcement is USUAL else enforcement
        enforcement.check(bound)
        return cls(source, filter, bound, enforcement, objective, horizon)

    @property
    def task(self) -> Task:
        """The task that the process was made for, with its names. Not for compiled code."""
        if self._task.value is None:
            raise InputError("This process was not made for a task with a finite model.")
        return self._task.value

    @property
    def prior(self) -> Belief:
        """p(s, u)."""
        return self.filter.prior

    @property
    def channel(self) -> Channel:
        """q(z | a, s, u) of the model."""
        return self.filter.model_channel

    @property
    def sensors(self) -> int:
        """Number of sensors; also the index of the action stop."""
        return self.filter.sensors

    def at_each(self, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return jnp.vectorize(function, signature="(s,u),()->()")

    def reading_from(self, source: Source) -> "Process":
        """The process in which sensors say something else, and the belief is still the model's.

        What the enforcement promises holds for the model's belief, whatever is read. What somebody with a better model
        comes to believe is for an audit to find out.
        """
        return eqx.tree_at(lambda p: p.source, self, source)

    def with_true_channel(self, channel: Float[np.ndarray, "A S U Z"]) -> "Process":
        """The process in which sensors follow this channel, and the belief is still the model's."""
        if not self.source.stationary:
            raise InputError("The readings are recorded ones: no other channel can draw them.")
        check_channel(channel, np.asarray(self.channel), np.asarray(self.prior))
        return self.reading_from(FromChannel(jnp.asarray(channel)))

    def enforced_by(self, enforcement: Enforcement) -> "Process":
        """The process under another enforcement of the same bound; its numbers may be arrays."""
        process = eqx.tree_at(lambda p: p.enforcement, self, enforcement, is_leaf=lambda x: isinstance(x, Enforcement))
        first = _first_public(process.filter, process.bound, enforcement, process.panel)
        return eqx.tree_at(lambda p: p.first, process, first, is_leaf=lambda x: x is None)

    def with_multiplier(self, multiplier: Scalar) -> "Process":
        """The process in which a bit about the secret has this price at the stop."""
        return eqx.tree_at(lambda p: p.enforcement.multiplier, self, multiplier)

    def with_value_kernels(self, continuation: ContinuationValue, refinements: int = REFINEMENTS) -> "Process":
        """The process whose merged symbols carry the continuation value, instead of labels only."""
        rule = ValueKernels(continuation, jnp.asarray(self.objective.error_penalty), refinements)
        return self.enforced_by(self.enforcement.with_rule(with_leaves(rule)))

    def init(self, key: PRNGKey) -> State:
        """A fresh episode: the hidden pair is drawn from the prior, the public belief is the prior."""
        return State(self.first, self.filter.initial(), jnp.zeros((), int), self.source.begin(key, self.prior))

    def resume(self, key: PRNGKey, public: PublicState, secret: Index) -> State:
        """An episode that starts at this public state with this secret; U is drawn from the belief given the secret."""
        # A recorded episode is somebody else's each time.
        assert self.source.stationary
        useful = draw(key, public.belief[secret])
        return State(public, public.belief, jnp.zeros((), int), Hidden(secret, useful, None))

    def _public(self, key: PRNGKey, memory: Memory, spent_bits: Scalar, others: Any) -> PublicState:
        kernels = _kernels(self.filter, self.bound, self.enforcement, memory, self.panel, others)
        prospect = self.filter.prospect(key, memory, spent_bits, kernels)
        return public_state(self.bound, self.enforcement, prospect, kernels, told(self.panel, others))

    def _panel_hears(self, before: PublicState, sensor: Index, symbol: Index) -> tuple[Any, Flag]:
        """What the panel's providers believe after a symbol, and whether all hold it possible."""
        if self.panel is None:
            return None, jnp.ones((), bool)
        chances = chances_of(self.channel, before.kernels, sensor, symbol)
        beliefs, possible = heard(self.panel, before.panel, sensor, chances)
        return beliefs, possible.all()

    def step(self, key: PRNGKey, state: State, action: Index | int) -> Transition:
        """Release one reading of the chosen sensor, or stop.

        What is not allowed is refused, whatever the policy: as an `InputError` where the action is known, as the stop
        within compiled code, where `Transition.refusal` tells (`simulate` raises it).
        """
        return carried_out(partial(self._carry_out, key, state), state.public.allowed, action)

    def _carry_out(self, key: PRNGKey, state: State, action: Index) -> Transition:
        """Release one reading of the chosen sensor, or stop; the action is allowed."""
        sensor, before = jnp.minimum(action, self.sensors - 1), state.public
        observed, symbol = self.source.emit(key, state.hidden, sensor, self.filter, before.kernels)
        memory, possible = self.filter.update(state.memory, sensor, observed, before.kernels)
        others, possible_for_all = self._panel_hears(before, sensor, symbol)
        impossible = (action < self.sensors) & ~(possible & possible_for_all)
        stop = (action >= self.sensors) | impossible
        spent = before.spent_bits + self._said_bits(state, sensor, memory)
        after = self._public(key, memory, spent, others)
        violated = ~stop & self.crossed_by_any(after.belief, spent, others)
        terminated = stop | (violated & self.ends_on_crossing)
        moved = State(after, memory, state.step + 1, state.hidden.after())
        cost = self.release_cost(self.crossed_by_any(before.belief, before.spent_bits, before.panel), violated)
        return Transition(
            state=jax.tree.map(lambda old, new: jnp.where(stop, old, new), state, moved),
            cost=jnp.where(stop, self.stop_cost(before.belief), cost),
            symbol=symbol,
            violated=violated,
            terminated=terminated,
            truncated=~terminated & (state.step + 1 >= self.horizon),
            refusal=Refusal(jnp.zeros((), bool), impossible, state.step, action, symbol),
        )

    def _said_bits(self, state: State, sensor: Index, memory: Memory) -> Scalar:
        """What the release adds to the information spent: as masked before it, where it was."""
        before = state.public
        if before.bits is not None:
            return before.bits[sensor]
        prospect = self.filter.prospect(None, state.memory, before.spent_bits, before.kernels)
        return self.filter.said_bits(prospect, sensor, self.filter.belief(memory))


@eqx.filter_jit
def _kernels(
    filter: Filter, bound: Bound, enforcement: Enforcement, memory: Memory, panel: Panel | None, others: Any
) -> Kernels | None:
    """What is sent in place of readings; None where nothing is."""
    if not enforcement.replaces:
        return None
    return kernels_at(Joint(filter.belief(memory), filter.model_channel), bound, enforcement, told(panel, others))


@eqx.filter_jit
def _first_public(filter: Filter, bound: Bound, enforcement: Enforcement, panel: Panel | None) -> PublicState:
    others = None if panel is None else panel.prior
    kernels = _kernels(filter, bound, enforcement, filter.initial(), panel, others)
    return public_state(bound, enforcement, filter.first_prospect(kernels), kernels, told(panel, others))
