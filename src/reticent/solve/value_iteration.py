"""Fitted value iteration with exact expectations: with a known model the next value is a sum, not a sample.

    going_on(beta, m) = min_a sum_y p(y | beta, a) (cost + V(beta_y, m_a)),    V = min(stop, going_on)

over the beliefs that the current policy visits. Each round plays a batch of episodes on by one-step lookahead, which
computes the right-hand side at every belief on the way, and fits the network to it. Under coarsening the kernels may
carry the learned value (value kernels): then the first half of the rounds learns one under label kernels.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
from reticent.types import Array, Index, PRNGKey, Scalar


@dataclass(frozen=True)
class Settings:
    """How to iterate.

    Stops after `rounds`, or once the mean absolute residual of the last ten rounds is below `tolerance` releases'
    worth of cost. `explore` is the chance of a random allowed sensor in place of the best action. `memory` is the
    weight of the past in the running average of networks that the policy uses in the end. The learning rate falls
    linearly to zero. `kernels` matters under coarsening only.
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


DEFAULT = Settings()


class IterationState(eqx.Module):
    """Everything that the iteration carries on: enough to stop and go on later with the same result."""

    network: Network
    average: Network
    optimiser: optax.OptState
    groups: list[ReleaseState]
    residuals: Float[Array, " 10"]
    key: Array
    round: Index


def initialise(process: ReleaseProcess, settings: Settings, seed: int) -> IterationState:
    """A value of half the stop cost at the prior everywhere, and fresh episodes in every lane."""
    network_key, key, *keys = jax.random.split(jax.random.key(seed), 2 + settings.groups)
    network = Network(described(*process.prior.shape), 1, settings.width, network_key)
    half = (process.stop_cost(process.prior) / process.error_penalty / 2).astype(jnp.float32)
    network = eqx.tree_at(lambda n: n.layers[-1].bias, network, half[None])
    first = lookahead_policy(process, network, settings.kernels, refinements=0).process
    groups = [begin(first, jax.random.split(key, settings.lanes)) for key in keys]
    start = optax.adam(1.0).init(eqx.filter(network, eqx.is_array))
    return IterationState(network, network, start, groups, jnp.full(10, jnp.inf), key, jnp.zeros((), int))


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
    """A policy for the process; it acts in `policy.process`, which under value kernels carries the learned value.

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
    return lookahead_policy(process, state.average, settings.kernels)


def _settled(process: ReleaseProcess, settings: Settings, state: IterationState) -> bool:
    return bool(jnp.mean(state.residuals) < settings.tolerance * process.time_cost)


def _round(process: ReleaseProcess, settings: Settings, state: IterationState, pool: ThreadPoolExecutor):
    """Play all groups on, then fit."""
    key, fit_key, *keys = jax.random.split(state.key, 2 + settings.groups)
    refinements = REFINEMENTS if 2 * int(state.round) >= settings.rounds else 0
    policy = lookahead_policy(process, state.network, settings.kernels, refinements)
    played = list(pool.map(lambda group, key: _play(policy, settings, group, key), state.groups, keys))
    groups, features, targets = zip(*played, strict=True)
    left = jnp.asarray(1 - int(state.round) / settings.rounds, jnp.float32)
    rows = jnp.concatenate(features), jnp.concatenate(targets)
    network, average, optimiser, residual = _fit(settings, state, *rows, fit_key, left)
    residuals = jnp.append(state.residuals[1:], residual * process.error_penalty)
    return IterationState(network, average, optimiser, list(groups), residuals, key, state.round + 1)


@eqx.filter_jit
def _play(policy: Lookahead, settings: Settings, lanes: ReleaseState, key: PRNGKey):
    """`rollout` steps in every lane; what the network sees and should say at each belief on the way."""
    process = policy.process

    def one(state: ReleaseState, key: PRNGKey):
        choice_key, key = jax.random.split(key)
        costs = going_on_costs(process, policy.value, state.public)
        rows = describe(state.public.belief, process.used(state.public.belief, state.public.spent_bits))
        action = _choose(process, settings, state.public, costs, choice_key)
        # Far beyond the stop cost it only matters that going on is dearer.
        target = jnp.minimum(jnp.min(costs), process.stop_cost(state.public.belief) + process.time_cost)
        state, _ = advance(process, key, state, action)
        return state, (rows, (target / process.error_penalty).astype(jnp.float32))

    def lane(start: tuple[ReleaseState, PRNGKey]):
        return jax.lax.scan(one, start[0], jax.random.split(start[1], settings.rollout))

    keys = jax.random.split(key, settings.lanes)
    lanes, (features, targets) = jax.lax.map(lane, (lanes, keys), batch_size=64)
    return lanes, features.reshape(-1, features.shape[-1]), targets.reshape(-1)


def _choose(process: ReleaseProcess, settings: Settings, public: PublicState, costs: Array, key: PRNGKey) -> Index:
    """The best action; now and then a random sensor, even where stopping is better."""
    explore_key, sensor_key = jax.random.split(key)
    cheapest = jnp.min(costs)
    greedy = jnp.where(cheapest < process.stop_cost(public.belief), jnp.argmin(costs), process.sensors)
    random = jax.random.categorical(sensor_key, jnp.where(public.allowed[:-1], 0.0, -jnp.inf))
    wander = (jax.random.uniform(explore_key) < settings.explore) & jnp.any(public.allowed[:-1])
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
