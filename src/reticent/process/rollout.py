"""Running a process: a scan that restarts finished episodes, and whole episodes one after the other.

Both are written for one lane; callers vmap them.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.belief.bayes import secret_marginal
from reticent.errors import InputError
from reticent.guard.panel import chances_of
from reticent.process.cores import cores
from reticent.process.ongoing import OngoingProcess
from reticent.process.process import Process, Public, Refusal, State, Transition
from reticent.types import Array, Belief, Flag, Index, PRNGKey, Scalar

Act = Callable[[PRNGKey, Any], Index | int]
# Of a problem with a stop, or of one that goes on.
AnyProcess: TypeAlias = Process | OngoingProcess
Part = TypeVar("Part")
Done = TypeVar("Done")


class Moment(eqx.Module):
    """One step of a rollout. `after` is the public state that the action led to, before any restart."""

    public: Public
    action: Index
    cost: Scalar
    terminated: Flag
    truncated: Flag
    after: Public


def decide(act: Act, key: PRNGKey, public: Public) -> Index:
    """The action that a policy returns. Raises `InputError` if it cannot be compiled or returns no integer."""
    try:
        action = jnp.asarray(act(key, public))
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise InputError(
            "The policy needs the value of an array that is only known once compiled code runs, as Python's `if`, "
            "`int()` and numpy do. Write `jnp.where(condition, this, that)` in place of `if`."
        ) from error
    if action.shape != () or not jnp.issubdtype(action.dtype, jnp.integer):
        raise InputError(
            f"The policy must return one integer, the number of a sensor or one past the last to stop, but returned an "
            f"array of shape {action.shape} and type {action.dtype}."
        )
    return action.astype(int)


def side_by_side(process: Process) -> int:
    """Lanes that are best played side by side: what they compute must stay in the cache.

    Where crossing ends the episode, a learned value looks one release further than elsewhere.
    """
    return 8 if process.ends_on_crossing else 32


@eqx.filter_jit
def begin(process: AnyProcess, keys: PRNGKey) -> State:
    """Fresh episodes, one per key."""
    return jax.vmap(process.init)(keys)


def rollout(process: AnyProcess, act: Act, key: PRNGKey, state: State, length: int) -> tuple[State, Moment]:
    """`length` steps from the state on; a finished episode restarts. Returns the last state and moments [T]."""

    def one(state: State, key: PRNGKey) -> tuple[State, Moment]:
        act_key, key = jax.random.split(key)
        return advance(process, key, state, decide(act, act_key, state.public))

    return jax.lax.scan(one, state, jax.random.split(key, length))


def advance(process: AnyProcess, key: PRNGKey, state: State, action: Index) -> tuple[State, Moment]:
    """One step, and where play goes on: in a fresh episode if this one is finished."""
    step_key, init_key = jax.random.split(key)
    transition = process.step(step_key, state, action)
    after, done = transition.state, transition.terminated | transition.truncated
    moment = Moment(state.public, action, transition.cost, transition.terminated, transition.truncated, after.public)
    return jax.tree.map(lambda new, old: jnp.where(done, new, old), process.init(init_key), after), moment


class Episode(eqx.Module):
    """How one episode went. The stop cost of an episode cut at the horizon is charged where it was cut.

    `violation_cost` is the part of `cost` that the bound charges: for crossing it or, where bits have a price, for what
    was said about the secret. `spent_bits` averages to H(S) - E[H(beta_tau(S))] without bias, by the chain rule. `row`,
    where readings are replayed, is where in the recordings it started. `refusal` is of the last step.
    """

    cost: Scalar
    violation_cost: Scalar
    releases: Index
    spent_bits: Scalar
    highest_confidence: Scalar
    violated: Flag
    truncated: Flag
    belief: Belief
    secret: Index
    useful: Index
    row: Index | None
    refusal: Refusal


class Sent(eqx.Module):
    """What one step of an episode showed: which sensor spoke and what was sent, or that it `stopped`.

    `chances`, under a guarantee, is the public rule in force: the chance of each reading to be sent as this symbol.
    """

    episode: Index
    step: Index
    action: Index
    symbol: Index
    stopped: Flag
    chances: Float[Array, " Z"] | None


class Lane(eqx.Module):
    """Episodes one after the other: the current one and its record so far, and the records of those that are done."""

    state: State
    record: Episode
    records: Episode
    finished: Index
    key: PRNGKey


def begin_lane(process: Process, key: PRNGKey, count: int) -> Lane:
    """A lane at the start of the first of its `count` episodes."""
    first_key, key = jax.random.split(key)
    state = process.init(first_key)
    record = _empty_record(state)
    records = jax.tree.map(lambda value: jnp.zeros((count, *value.shape), value.dtype), record)
    return Lane(state, record, records, jnp.zeros((), int), key)


def advance_lane(process: Process, act: Act, lane: Lane) -> tuple[Lane, Sent]:
    """One step of the current episode. A lane whose episodes are all done keeps their records, whatever it does."""
    key, act_key, step_key, init_key = jax.random.split(lane.key, 4)
    action = decide(act, act_key, lane.state.public)
    transition = process.step(step_key, lane.state, action)
    record = _extend(process, lane.record, action, transition)
    records = jax.tree.map(lambda all_, one: all_.at[lane.finished].set(one), lane.records, record)
    done = transition.terminated | transition.truncated
    fresh = process.init(init_key)
    restart = (fresh, _empty_record(fresh))
    state, record = jax.tree.map(lambda new, old: jnp.where(done, new, old), restart, (transition.state, record))
    chances = rule_behind(process, lane.state.public, action, transition.symbol)
    stopped = action >= process.sensors
    sent = Sent(lane.finished, lane.state.step, action, transition.symbol, stopped, chances)
    return Lane(state, record, records, lane.finished + done, key), sent


def rule_behind(process: AnyProcess, public: Public, action: Index, symbol: Index) -> Float[Array, " Z"] | None:
    """The chance of each reading of the sensor to be sent as this symbol; None where readings are sent as they are."""
    if public.kernels is None:
        return None
    return chances_of(process.channel, public.kernels, jnp.minimum(action, process.sensors - 1), symbol)


# Many episodes per lane even out their lengths, so that lanes wait little for the longest.
LANES, EPISODES_PER_LANE = 128, 64
PIECE = LANES * EPISODES_PER_LANE
STEPS_PER_TRACE = 64


def simulate(process: Process, act: Act, count: int, seed: int) -> Episode:
    """Records of `count` independent episodes, as numpy arrays [count]. Deterministic given the seed.

    An action that is not allowed, or a reading that the model calls impossible, is an `InputError`.

    Pieces of one size, whatever the count, so that a policy is compiled once for all its simulations; lanes that are
    not needed stand still.
    """
    run = lambda piece: jax.device_get(_simulate_piece(process, act, piece.key, jnp.asarray(piece.episodes)))  # noqa: E731
    return _joined(process, in_threads(run, _pieces(count, seed)), count)


def simulate_traced(process: Process, act: Act, count: int, seed: int) -> tuple[Episode, Sent]:
    """The same episodes as `simulate`, with all that was sent, in order; `episode` counts from 0 to `count`."""
    pieces = in_threads(lambda piece: _trace_piece(process, act, piece), _pieces(count, seed))
    records = _joined(process, [records for records, _ in pieces], count)
    traces = [eqx.tree_at(lambda s: s.episode, sent, sent.episode + i * PIECE) for i, (_, sent) in enumerate(pieces)]
    return records, jax.tree.map(lambda *parts: np.concatenate(parts), *traces)


def _joined(process: Process, pieces: list[Episode], count: int) -> Episode:
    """One record of all pieces. What a step refused is an error: such episodes are not those of the policy."""
    records = jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *pieces)
    records.refusal.raise_first(process.sensors)
    return records


class Piece(NamedTuple):
    """A piece of a simulation: its key, and how many of its episodes are wanted."""

    key: PRNGKey
    episodes: int


def _pieces(count: int, seed: int) -> list[Piece]:
    keys = jax.random.split(jax.random.key(seed), -(-count // PIECE))
    return [Piece(key, min(PIECE, count - i * PIECE)) for i, key in enumerate(keys)]


def in_threads(run: Callable[[Part], Done], parts: Sequence[Part] | PRNGKey) -> list[Done]:
    """One part after the other where compiled code keeps one core busy, several side by side where there are more."""
    # The first compiles, so that the others need not compile the same thing at the same time.
    first = run(parts[0])
    with ThreadPoolExecutor(len(cores())) as pool:
        return [first, *pool.map(run, parts[1:])]


def _due(episodes: Any, lane: Any, xp: Any) -> Any:
    """How many episodes a lane plays."""
    return xp.clip(episodes - lane * EPISODES_PER_LANE, 0, EPISODES_PER_LANE)


@eqx.filter_jit
def _simulate_piece(process: Process, act: Act, key: PRNGKey, wanted: Index) -> Episode:
    def episodes(lane: tuple[PRNGKey, Index]) -> Episode:
        # One flat loop over steps rather than a loop within a loop: lanes that run side by side then wait for the
        # longest lane, not for the longest episode of each round.
        key, number = lane
        start, due = begin_lane(process, key, EPISODES_PER_LANE), _due(wanted, number, jnp)
        more = lambda lane: lane.finished < due  # noqa: E731
        return jax.lax.while_loop(more, lambda lane: advance_lane(process, act, lane)[0], start).records

    each = jax.random.split(key, LANES), jnp.arange(LANES)
    lanes = jax.lax.map(episodes, each, batch_size=side_by_side(process))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), lanes)


def _trace_piece(process: Process, act: Act, piece: Piece) -> tuple[Episode, Sent]:
    # Half as many, a quarter and so on: few shapes to compile.
    count = LANES
    while count * EPISODES_PER_LANE >= 2 * piece.episodes:
        count //= 2
    lanes, traces = _begin_lanes(process, jax.random.split(piece.key, LANES)[:count]), []
    due = _due(piece.episodes, np.arange(count), np)
    while (lanes.finished < due).any():
        lanes, sent = _trace_on(process, act, lanes)
        traces.append(jax.device_get(sent))
    sent: Sent = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *traces)
    kept = sent.episode < due[:, None]
    lane = np.broadcast_to(np.arange(count)[:, None], kept.shape)
    sent = eqx.tree_at(lambda s: s.episode, sent, sent.episode + EPISODES_PER_LANE * lane)
    records = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), jax.device_get(lanes.records))
    return records, jax.tree.map(lambda x: x[kept], sent)


@eqx.filter_jit
def _begin_lanes(process: Process, keys: PRNGKey) -> Lane:
    return jax.vmap(lambda key: begin_lane(process, key, EPISODES_PER_LANE))(keys)


@eqx.filter_jit
def _trace_on(process: Process, act: Act, lanes: Lane) -> tuple[Lane, Sent]:
    def one(lane: Lane, _: None) -> tuple[Lane, Sent]:
        return advance_lane(process, act, lane)

    return jax.vmap(lambda lane: jax.lax.scan(one, lane, None, length=STEPS_PER_TRACE))(lanes)


def _empty_record(state: State) -> Episode:
    return Episode(
        cost=jnp.zeros(()),
        violation_cost=jnp.zeros(()),
        releases=state.step,
        spent_bits=state.public.spent_bits,
        highest_confidence=_confidence(state.public),
        violated=jnp.zeros((), bool),
        truncated=jnp.zeros((), bool),
        belief=state.public.belief,
        secret=state.secret,
        useful=state.useful,
        row=state.hidden.row,
        refusal=Refusal.none(),
    )


def _confidence(public: Public) -> Scalar:
    """max_s beta(s), of the surest provider."""
    own = jnp.max(secret_marginal(public.belief))
    return own if public.panel is None else jnp.maximum(own, jnp.max(secret_marginal(public.panel)))


def _extend(process: Process, record: Episode, action: Index, transition: Transition) -> Episode:
    state = transition.state
    plain = jnp.where(action >= process.sensors, transition.cost, process.objective.time_cost)
    declared_late = jnp.where(transition.truncated, process.stop_cost(state.public.belief), 0.0)
    charged = transition.cost - plain
    if process.enforcement.priced:
        declared = (action >= process.sensors) | transition.truncated
        charged = charged + jnp.where(declared, process.leakage_cost(state.public.belief), 0.0)
    return Episode(
        cost=record.cost + transition.cost + declared_late,
        violation_cost=record.violation_cost + charged,
        releases=state.step,
        spent_bits=state.public.spent_bits,
        highest_confidence=jnp.maximum(record.highest_confidence, _confidence(state.public)),
        violated=record.violated | transition.violated,
        truncated=transition.truncated,
        belief=state.public.belief,
        secret=state.secret,
        useful=state.useful,
        row=record.row,
        refusal=transition.refusal,
    )
