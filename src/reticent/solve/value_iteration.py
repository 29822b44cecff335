"""Fitted value iteration with exact expectations: with a known model the next value is a sum, not a sample.

    going_on(beta, m) = min_a sum_y p(y | beta, a) (cost + V(beta_y, m_a)),    V = min(stop, going_on)

over the beliefs that the current policy visits. Each round plays a batch of episodes on by one-step lookahead, which
computes the right-hand side at every belief on the way, and fits the network to it. Under coarsening the kernels may
carry the learned value (value kernels): then the first half of the rounds learns one under label kernels.
Under the bound on expected information the price of a bit is learned as well: its excess or lack after each round
moves it, and all rounds are played, because it settles only as its steps fall.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Float

from reticent.cores import cores
from reticent.policy.lookahead import KernelChoice, Lookahead, going_on_costs, lookahead_policy
from reticent.policy.network import Network, describe, described
from reticent.process.release import PublicState, ReleaseProcess, ReleaseState
from reticent.process.rollout import advance, begin
from reticent.process.value_kernels import REFINEMENTS
from reticent.solve.dual import scout
from reticent.solve.multiplier import Leakage, Price, ascend, finally_priced, free, leakage, priced
from reticent.types import Array, Belief, Flag, Index, PRNGKey, Scalar


@dataclass(frozen=True)
class Settings:
    """How to iterate.

    Stops after `rounds`, or once the mean absolute residual of the last ten rounds is below `tolerance` releases'
    worth of cost. `explore` is the chance of a random allowed sensor in place of the best action. `memory` is the
    weight of the past in the running average of networks that the policy uses in the end. The learning rate falls
    linearly to zero. `kernels` matters under a guarantee only. `scouts`: on so many draws per round a clairvoyant goes
    where the value errs (see solve/dual.py), and the value is fitted there as well: for certificates.
    """

    rounds: int = 300
    tolerance: float = 0.02
    groups: int = 4
    lanes: int = 128
    rollout: int = 8
    epochs: int = 4
    minibatches: int = 8
    learning_rate: float = 3e-3
    width: int = 64
    explore: float = 0.1
    memory: float = 0.95
    kernels: KernelChoice = "label"
    scouts: int = 0


# Draws per round for certificates.
SCOUTS = 64
DEFAULT = Settings()


class IterationState(eqx.Module):
    """Everything that the iteration carries on: enough to stop and go on later with the same result.

    `price` is what a bit about the secret costs, learned along with the value under "multiplier" only.
    """

    network: Network
    average: Network
    optimiser: optax.OptState
    groups: list[ReleaseState]
    residuals: Float[Array, " 10"]
    key: Array
    round: Index
    price: Price | None


def initialise(process: ReleaseProcess, settings: Settings, seed: int) -> IterationState:
    """A value of half the stop cost at the prior everywhere, and fresh episodes in every lane."""
    network_key, key, *keys = jax.random.split(jax.random.key(seed), 2 + settings.groups)
    network = Network(described(*process.prior.shape), 1, settings.width, network_key)
    half = (process.stop_cost(process.prior) / process.error_penalty / 2).astype(jnp.float32)
    network = eqx.tree_at(lambda n: n.layers[-1].bias, network, half[None])
    first = lookahead_policy(process, network, settings.kernels, refinements=0).process
    groups = [begin(first, jax.random.split(key, settings.lanes)) for key in keys]
    start = optax.adam(1.0).init(eqx.filter(network, eqx.is_array))
    residuals = jnp.full(10, jnp.inf)
    return IterationState(network, network, start, groups, residuals, key, jnp.zeros((), int), free(process))


def iterate(
    process: ReleaseProcess, settings: Settings, state: IterationState
) -> Iterator[tuple[IterationState, float]]:
    """Yield the state and its residual, in units of cost, after each round, until one of the two ends is reached."""
    # The groups are fixed, whatever the machine: the result does not depend on the number of cores.
    with ThreadPoolExecutor(len(cores())) as pool:
        while int(state.round) < settings.rounds and not _settled(process, settings, state):
            state = _round(process, settings, state, pool)
            yield state, float(state.residuals[-1])


def value_iteration(
    process: ReleaseProcess,
    seed: int = 0,
    settings: Settings = DEFAULT,
    report: Callable[[int, float], None] | None = None,
) -> Lookahead:
    """A policy for the process; it acts in `policy.process`, which carries what was learned along with it: the value
    under value kernels, the multiplier under the bound on expected information.

    `report` is called with the round and its residual.
    """
    state = initialise(process, settings, seed)
    for reached, residual in iterate(process, settings, state):
        state = reached
        if report:
            report(int(state.round), residual)
    return policy_of(process, settings, state)


def policy_of(process: ReleaseProcess, settings: Settings, state: IterationState) -> Lookahead:
    """The policy that the iteration has reached."""
    return lookahead_policy(finally_priced(process, state.price), state.average, settings.kernels)


def _settled(process: ReleaseProcess, settings: Settings, state: IterationState) -> bool:
    return state.price is None and bool(jnp.mean(state.residuals) < settings.tolerance * process.time_cost)


def _round(process: ReleaseProcess, settings: Settings, state: IterationState, pool: ThreadPoolExecutor):
    """Play all groups on, then fit."""
    key, fit_key, *keys = jax.random.split(state.key, 2 + settings.groups)
    refinements = REFINEMENTS if 2 * int(state.round) >= settings.rounds else 0
    policy = lookahead_policy(priced(process, state.price), state.network, settings.kernels, refinements)
    played = list(pool.map(lambda group, key: _play(policy, settings, group, key), state.groups, keys))
    groups, features, targets, leaked = zip(*played, strict=True)
    left = jnp.asarray(1 - int(state.round) / settings.rounds, jnp.float32)
    if settings.scouts:
        more = _scouted(policy, settings, fit_key)
        features, targets = (*features, more[0]), (*targets, more[1])
    rows = jnp.concatenate(features), jnp.concatenate(targets)
    network, average, optimiser, residual = _fit(settings, state, *rows, fit_key, left)
    residuals = jnp.append(state.residuals[1:], residual * process.error_penalty)
    price = state.price and _ascend(process, state.price, leaked, left)
    return IterationState(network, average, optimiser, list(groups), residuals, key, state.round + 1, price)


@eqx.filter_jit
def _ascend(process: ReleaseProcess, price: Price, leaked: tuple[Leakage, ...], left: Scalar) -> Price:
    return ascend(process, price, jax.tree.map(lambda *groups: sum(groups), *leaked), left)


@eqx.filter_jit
def _play(policy: Lookahead, settings: Settings, lanes: ReleaseState, key: PRNGKey):
    """`rollout` steps in every lane; what the network sees and should say at each belief on the way.

    Under "multiplier" also what ended episodes leaked, in every other lane: those do not explore, because a random
    sensor now and then says more than the policy does.
    """
    process = policy.process
    prices = process.enforce == "multiplier"
    explores = jnp.arange(settings.lanes) % 2 == 0 if prices else jnp.ones(settings.lanes, bool)

    def one(explores: Flag, state: ReleaseState, key: PRNGKey):
        choice_key, key = jax.random.split(key)
        costs = going_on_costs(process, policy.value, state.public)
        rows = describe(state.public.belief, process.used(state.public.belief, state.public.spent_bits))
        action = _choose(process, settings, state.public, costs, choice_key, explores)
        target = _target(process, state.public.belief, jnp.min(costs))
        state, moment = advance(process, key, state, action)
        ended = (moment.terminated | moment.truncated) & ~explores
        said = leakage(ended, moment.after.spent_bits) if prices else None
        return state, (rows, target, said)

    def lane(start: tuple[ReleaseState, PRNGKey, Flag]):
        return jax.lax.scan(partial(one, start[2]), start[0], jax.random.split(start[1], settings.rollout))

    keys = jax.random.split(key, settings.lanes)
    lanes, (features, targets, said) = jax.lax.map(lane, (lanes, keys, explores), batch_size=64)
    return lanes, features.reshape(-1, features.shape[-1]), targets.reshape(-1), jax.tree.map(jnp.sum, said)


def _scouted(policy: Lookahead, settings: Settings, key: PRNGKey):
    """As many rows as one round plays, from where a clairvoyant goes."""
    count = settings.groups * settings.lanes * settings.rollout
    seed = int(jax.random.bits(jax.random.fold_in(key, 1), dtype=jnp.uint32))
    beliefs, costs = scout(policy.process, policy.value, settings.scouts, count, seed)
    return _rows(policy.process, jnp.asarray(beliefs), jnp.asarray(costs))


@eqx.filter_jit
def _rows(process: ReleaseProcess, beliefs: Float[Array, "N S U"], costs: Float[Array, " N"]):
    nothing = jnp.zeros(())
    features = jax.vmap(lambda belief: describe(belief, process.used(belief, nothing)))(beliefs)
    return features, jax.vmap(lambda *pair: _target(process, *pair))(beliefs, costs)


def _target(process: ReleaseProcess, belief: Belief, cost: Scalar) -> Float[Array, ""]:
    """What the network should say where going on costs so much."""
    # Far beyond the stop cost it only matters that going on is dearer.
    target = jnp.minimum(cost, process.stop_cost(belief) + process.time_cost)
    if process.enforce == "multiplier":
        target = target - process.leakage_cost(belief)
    return (target / process.error_penalty).astype(jnp.float32)


def _choose(
    process: ReleaseProcess, settings: Settings, public: PublicState, costs: Array, key: PRNGKey, explores: Flag
) -> Index:
    """The best action; now and then a random sensor, even where stopping is better."""
    explore_key, sensor_key = jax.random.split(key)
    cheapest = jnp.min(costs)
    greedy = jnp.where(cheapest < process.stop_cost(public.belief), jnp.argmin(costs), process.sensors)
    random = jax.random.categorical(sensor_key, jnp.where(public.allowed[:-1], 0.0, -jnp.inf))
    wander = explores & (jax.random.uniform(explore_key) < settings.explore) & jnp.any(public.allowed[:-1])
    return jnp.where(wander, random, greedy)


@eqx.filter_jit
def _fit(settings: Settings, state: IterationState, features: Array, targets: Array, key: PRNGKey, left: Scalar):
    """Several passes of Adam over the batch; the residual is that of the network before."""

    def errors(network: Network, rows: Array) -> Array:
        return jax.vmap(network)(features[rows])[:, 0] - targets[rows]

    def descend(carry, rows):
        network, optimiser = carry
        gradient = jax.grad(lambda network: 0.5 * jnp.mean(errors(network, rows) ** 2))(network)
        direction, optimiser = optax.adam(1.0).update(gradient, optimiser)
        step = jax.tree.map(lambda x: settings.learning_rate * left * x, direction)
        return (eqx.apply_updates(network, step), optimiser), None

    residual = jnp.mean(jnp.abs(errors(state.network, jnp.arange(targets.size))))
    orders = jax.vmap(jax.random.permutation, (0, None))(jax.random.split(key, settings.epochs), targets.size)
    rows = orders.reshape(settings.epochs * settings.minibatches, -1)
    (network, optimiser), _ = jax.lax.scan(descend, (state.network, state.optimiser), rows)
    average = jax.tree.map(lambda old, new: settings.memory * old + (1 - settings.memory) * new, state.average, network)
    return network, average, optimiser, residual
