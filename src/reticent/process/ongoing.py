"""The process that goes on: the hidden pair moves, one sensor speaks or none, time passes. Pure `init` and `step`.

The contract, one test each in tests/process/test_ongoing.py:
- a step costs C_T if something was sent, and lambda (1 - max_u b(u)) after what was sent;
- nothing ends an episode but the horizon, which truncates it;
- whatever is sent, and whatever time passes, no posterior of the secret of any moment reaches the bound;
- an action that is not allowed is refused, and so is a reading of probability zero; silence is always allowed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from reticent.belief.filter import ExactFilter
from reticent.guard.chain import present_only
from reticent.guard.moments import Chain
from reticent.guard.ongoing import OngoingRules, OngoingState, chain_and_slots, panel_of
from reticent.guard.ongoing_panel import OngoingPanel
from reticent.problem.bound import Bound
from reticent.problem.enforcement import Enforcement
from reticent.problem.monitoring import Monitoring
from reticent.problem.objective import Objective
from reticent.process.leaves import with_leaves
from reticent.process.process import Kept, Refusal, State, Transition, carried_out
from reticent.process.source import FromModel, FromTrajectories
from reticent.types import Array, Belief, Channel, Index, PRNGKey


class OngoingProcess(eqx.Module, OngoingRules):
    """A monitoring task that is played: rules over JAX arrays, and a hidden pair that moves by the model.

    Numbers are array leaves: other bounds and prices do not recompile.

    Args:
        task: The task.
        chain: What its guard looks ahead and back for; by default all that is promised.
        slots: How many past moments it can keep open.

    Example:
        >>> import jax
        >>> from reticent.problem.synthetic import two_binary_sensors
        >>> moves = {"secret": [[0.95, 0.05], [0.05, 0.95]], "useful": [[0.8, 0.2], [0.2, 0.8]]}
        >>> process = rt.OngoingProcess(rt.Monitoring(two_binary_sensors().moving(moves), rt.Confidence(0.8)))
        >>> process.init(jax.random.key(0)).public.allowed.tolist()
        [True, True, True]
    """

    filter: ExactFilter
    source: FromModel | FromTrajectories
    chain: Chain
    panel: OngoingPanel | None
    bound: Bound
    enforcement: Enforcement
    objective: Objective
    horizon: Index
    first: OngoingState
    slots: int = eqx.field(static=True)
    window: int = eqx.field(static=True)
    _task: Kept = eqx.field(static=True)

    def __init__(self, task: Monitoring, chain: Chain | None = None, slots: int | None = None) -> None:
        whole, enough = chain_and_slots(task)
        self.filter = ExactFilter(jnp.asarray(task.model.prior), jnp.asarray(task.model.channel))
        self.source = FromModel()
        self.chain = jax.tree.map(jnp.asarray, whole if chain is None else chain)
        self.panel = jax.tree.map(jnp.asarray, panel_of(task) if chain is None else None)
        self.slots, self.window = enough if slots is None else slots, task.window or 0
        self.bound, self.enforcement = with_leaves(task.bound), with_leaves(task.enforcement)
        self.objective, self.horizon = with_leaves(task.objective), jnp.asarray(task.horizon)
        self._task = Kept(task)
        self.first = _first(self)

    @classmethod
    def keeping_the_present_only(cls, task: Monitoring) -> "OngoingProcess":
        """The process of a guard that keeps the bound on the secret of now alone, for a provider who knows the model,
        for comparison: what it sends can tell the secret of a past or future moment, or more to others."""
        chain, _ = chain_and_slots(task)
        return cls(task, present_only(task.model, chain.limits), 0)

    def each(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return jax.vmap(function)

    @property
    def task(self) -> Monitoring:
        """The task that the process was made for, with its names. Not for compiled code."""
        return self._task.value

    @property
    def prior(self) -> Belief:  # type: ignore[override]
        """p(s, u)."""
        return self.filter.prior

    @property
    def channel(self) -> Channel:  # type: ignore[override]
        """q(z | a, s, u)."""
        return self.filter.channel

    @property
    def sensors(self) -> int:
        """Number of sensors; also the index of silence."""
        return self.filter.sensors

    @property
    def _transition(self) -> Float[Array, "S U S U"]:
        return self.chain.transition.reshape(*self.prior.shape, *self.prior.shape)

    def reading_from(self, source: FromTrajectories) -> "OngoingProcess":
        """The process in which recorded lives are played; beliefs and guard are still the model's."""
        return eqx.tree_at(lambda process: process.source, self, source)

    def init(self, key: PRNGKey) -> State:
        """A fresh day: the public belief is the prior, the hidden pair that of the source."""
        return State(self.first, self.first.belief, jnp.zeros((), int), self.source.begin(key, self.prior))

    def step(self, key: PRNGKey, state: State, action: Index | int) -> Transition:
        """One step: the chosen sensor speaks, or nothing is sent; then time passes.

        What is not allowed is refused, whatever the policy: as an `InputError` where the action is known, as silence
        within compiled code, where `Transition.refusal` tells.
        """
        return carried_out(partial(self._carry_out, key, state), state.public.allowed, action)

    def _carry_out(self, key: PRNGKey, state: State, action: Index) -> Transition:
        emit_key, move_key = jax.random.split(key)
        before: OngoingState = state.public
        sensor = jnp.minimum(action, self.sensors - 1)
        _, symbol = self.source.emit(emit_key, state.hidden, sensor, self.filter, before.kernels)
        told, possible = self.sent(before, sensor, symbol)
        impossible = (action < self.sensors) & ~possible
        speaks = (action < self.sensors) & possible
        moments = jax.tree.map(lambda new, old: jnp.where(speaks, new, old), told, before.moments)
        bits = jnp.where(speaks, self.prospect(before).bits_of(sensor), 0.0)
        after = self.later(before, moments, bits)
        no = jnp.zeros((), bool)
        return Transition(
            state=State(
                after, after.belief, state.step + 1, self.source.moved(move_key, state.hidden, self._transition)
            ),
            cost=self.objective.time_cost * speaks + self.error_cost(moments.belief),
            symbol=symbol,
            violated=after.headroom <= 0,
            terminated=no,
            truncated=state.step + 1 >= self.horizon,
            refusal=Refusal(no, impossible, state.step, action, symbol),
        )


@eqx.filter_jit
def _first(process: OngoingProcess) -> OngoingState:
    return process.begin()
