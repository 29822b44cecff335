"""The release process over recordings, with whatever belief the provider has: exact or learned.

What the chosen sensor said at that moment is released as it is. A confidence bound is enforced by a penalty, as in the
paper; an information bound masks the sensors whose next reading would, by the provider's estimate, cross it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.belief.provider import Provider
from reticent.data.episodes import Episodes, episodes_of
from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.problem.bound import Bound, ConfidenceBound, InformationBound
from reticent.problem.objective import Objective
from reticent.process.process import Process, PublicState, Refusal, State, Transition
from reticent.process.recorded import draw
from reticent.types import Array, Belief, Index, PerSensor, PRNGKey, Scalar

FIRST_ESTIMATES = 64


class ReplayState(State):
    """As every state, with what the provider knows.

    `next_bits` is what the next reading of each sensor would say about the secret, under an information bound only.
    """

    public: PublicState
    step: Index
    secret: Index
    useful: Index
    row: Index | None
    known: Any
    next_bits: PerSensor | None


class ReplayProcess(Process):
    """Episodes are stretches of one person's recording. `symbol` of a transition is the row of what was released."""

    provider: Provider
    readings: Float[Array, "N A D"]
    episodes: Episodes
    # Before the first reading of every episode: estimated once, with more draws, not at every restart.
    first_bits: PerSensor | None

    def __init__(
        self,
        provider: Provider,
        recorded: Readings,
        bound: Bound,
        objective: Objective = Objective(),  # noqa: B008  (frozen)
        horizon: int = 10,
    ) -> None:
        if not isinstance(bound, ConfidenceBound | InformationBound):
            raise InputError("Over recordings the bound is on confidence, or on information along every path.")
        bound.check(float(np.asarray(provider.prior).sum(1).max()))
        enforce = "penalty" if isinstance(bound, ConfidenceBound) else "mask"
        super().__init__(provider.prior, bound, objective, enforce, horizon)
        self.provider = provider
        self.readings = jnp.asarray(recorded.values)
        self.episodes = episodes_of(recorded, horizon)
        self.first_bits = _first_bits(provider) if enforce == "mask" else None

    @property
    def sensors(self) -> int:
        return self.provider.sensors

    def init(self, key: PRNGKey) -> ReplayState:
        """A fresh episode: the pair from the prior, then a person and a moment."""
        pair_key, row_key = jax.random.split(key)
        pair = draw(pair_key, self.prior.reshape(-1))
        secret, useful = jnp.divmod(pair, self.prior.shape[1])
        public = self._public(self.prior, jnp.zeros(()), self.first_bits)
        row = self.episodes.begin(row_key, pair)
        return ReplayState(public, jnp.zeros((), int), secret, useful, row, self.provider.start(), self.first_bits)

    def _public(self, belief: Belief, spent_bits: Scalar, next_bits: PerSensor | None) -> PublicState:
        """The public state, with the sensors that may speak next."""
        sensors = jnp.ones(self.sensors, bool) if next_bits is None else spent_bits + next_bits < self.limit
        return PublicState(belief, spent_bits, jnp.append(sensors, True), None)

    def _carry_out(self, key: PRNGKey, state: ReplayState, action: Index) -> Transition:
        assert state.row is not None
        sensor = jnp.minimum(action, self.sensors - 1)
        known, possible = self.provider.learn(state.known, sensor, self.readings[state.row, sensor])
        impossible = (action < self.sensors) & ~possible
        stop = (action >= self.sensors) | impossible
        belief, spent, next_bits = self.provider.belief(known), state.public.spent_bits, None
        if state.next_bits is not None:
            spent, next_bits = spent + state.next_bits[sensor], self.provider.information_bits(key, known)
        public = self._public(belief, spent, next_bits)
        violated = ~stop & (self.forbidden(belief) | ((self.bound == "information") & (spent >= self.limit)))
        terminated, step = stop | (violated & (self.enforce == "penalty")), state.step + 1
        moved = ReplayState(public, step, state.secret, state.useful, state.row + 1, known, next_bits)
        return Transition(
            state=jax.tree.map(lambda old, new: jnp.where(stop, old, new), state, moved),
            cost=jnp.where(stop, self.stop_cost(state.public.belief), self.release_cost(state.public.belief, violated)),
            symbol=jnp.where(stop, -1, state.row),
            violated=violated,
            terminated=terminated,
            truncated=~terminated & (step >= self.horizon),
            refusal=Refusal(jnp.zeros((), bool), impossible, state.step, action, state.row),
        )


@eqx.filter_jit
def _first_bits(provider: Provider) -> PerSensor:
    keys = jax.random.split(jax.random.key(0), FIRST_ESTIMATES)
    return jnp.mean(jax.vmap(provider.information_bits, (0, None))(keys, provider.start()), axis=0)
