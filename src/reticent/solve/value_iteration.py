"""Fitted value iteration with exact expectations: with a known model the next value is a sum, not a sample.

    continuation(beta, m) = min_a sum_y p(y | beta, a) (cost + V(beta_y, m_a)),    V = min(stop, continuation)

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
from jaxtyping import Float

from reticent.policy.lookahead import Lookahead, lookahead_policy, q_values, value_network
from reticent.policy.network import Network
from reticent.policy.settings import KernelChoice
from reticent.problem.merging import REFINEMENTS
from reticent.process.cores import cores
from reticent.process.process import Process, PublicState, State
from reticent.process.rollout import advance, begin, side_by_side
from reticent.solve.bellman import Fit, Targets, averaged, bellman_target, errors, fitted, fresh_fit
from reticent.solve.multiplier import Leakage, Price, ascend, finally_priced, free, leakage, priced
from reticent.types import Array, Flag, Index, PRNGKey, Scalar


@dataclass(frozen=True)
class Settings:
    """How to iterate.

    Stops after `rounds`, or once the mean absolute residual of the last ten rounds is below `tolerance` releases'
    worth of cost. `explore` is the chance of a random allowed sensor in place of the best action. `memory` is the
    weight of the past in the running average of networks that the policy uses in the end. The learning rate falls
    linearly to zero. `kernels` matters under a guarantee only.
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
    """Everything that the iteration carries on: enough to stop and go on later with the same result.

    `price` is what a bit about the secret costs, learned along with the value under "multiplier" only.
    """

    fit: Fit
    average: Network
    groups: list[State]
    residuals: Float[Array, " 10"]
    key: Array
    round: Index
    price: Price | None


def initialise(process: Process, settings: Settings, seed: int) -> IterationState:
    """A fresh value, and fresh episodes in every lane."""
    network_key, key, *keys = jax.random.split(jax.random.key(seed), 2 + settings.groups)
    network = value_network(process, settings.width, network_key)
    first = lookahead_policy(process, network, settings.kernels, refinements=0).process
    groups = [begin(first, jax.random.split(key, settings.lanes)) for key in keys]
    residuals = jnp.full(10, jnp.inf)
    return IterationState(fresh_fit(network), network, groups, residuals, key, jnp.zeros((), int), free(process))


def iterate(process: Process, settings: Settings, state: IterationState) -> Iterator[tuple[IterationState, float]]:
    """Yield the state and its residual, in units of cost, after each round, until one of the two ends is reached."""
    # The groups are fixed, whatever the machine: the result does not depend on the number of cores.
    with ThreadPoolExecutor(len(cores())) as pool:
        while int(state.round) < settings.rounds and not _settled(process, settings, state):
            state = _round(process, settings, state, pool)
            yield state, float(state.residuals[-1])


def value_iteration(
    process: Process,
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


def policy_of(process: Process, settings: Settings, state: IterationState) -> Lookahead:
    """The policy that the iteration has reached."""
    return lookahead_policy(finally_priced(process, state.price), state.average, settings.kernels)


def _settled(process: Process, settings: Settings, state: IterationState) -> bool:
    return state.price is None and bool(jnp.mean(state.residuals) < settings.tolerance * process.objective.time_cost)


def _round(process: Process, settings: Settings, state: IterationState, pool: ThreadPoolExecutor):
    """Play all groups on, then fit."""
    key, fit_key, *keys = jax.random.split(state.key, 2 + settings.groups)
    refinements = REFINEMENTS if 2 * int(state.round) >= settings.rounds else 0
    policy = lookahead_policy(
        priced(process, state.price), state.fit.network, settings.kernels, refinements=refinements
    )
    played = list(pool.map(lambda group, key: _play(policy, settings, group, key), state.groups, keys))
    groups, targets, leaked = zip(*played, strict=True)
    left = jnp.asarray(1 - int(state.round) / settings.rounds, jnp.float32)
    targets = jax.tree.map(lambda *parts: jnp.concatenate(parts), *targets)
    fit, average, residual = _fit(policy.process, settings, state, targets, fit_key, left)
    residuals = jnp.append(state.residuals[1:], residual * process.objective.error_penalty)
    price = state.price and _ascend(process, state.price, leaked, left)
    return IterationState(fit, average, list(groups), residuals, key, state.round + 1, price)


@eqx.filter_jit
def _ascend(process: Process, price: Price, leaked: tuple[Leakage, ...], left: Scalar) -> Price:
    return ascend(process, price, jax.tree.map(lambda *groups: sum(groups), *leaked), left)


@eqx.filter_jit
def _play(policy: Lookahead, settings: Settings, lanes: State, key: PRNGKey):
    """`rollout` steps in every lane; what is to be learned at each belief on the way.

    Under "multiplier" also what ended episodes leaked, in every other lane: those do not explore, because a random
    sensor now and then says more than the policy does.
    """
    process = policy.process
    prices = process.enforcement.priced
    explores = jnp.arange(settings.lanes) % 2 == 0 if prices else jnp.ones(settings.lanes, bool)

    def one(explores: Flag, state: State, key: PRNGKey):
        choice_key, key = jax.random.split(key)
        costs = q_values(process, policy.value, state.public)
        target = bellman_target(process, state.public.belief, state.public.spent_bits, costs)
        action = _choose(process, settings, state.public, costs, choice_key, explores)
        state, moment = advance(process, key, state, action)
        ended = (moment.terminated | moment.truncated) & ~explores
        said = leakage(ended, moment.after.spent_bits) if prices else None
        return state, (target, said)

    def lane(start: tuple[State, PRNGKey, Flag]):
        return jax.lax.scan(partial(one, start[2]), start[0], jax.random.split(start[1], settings.rollout))

    keys = jax.random.split(key, settings.lanes)
    lanes, (targets, said) = jax.lax.map(lane, (lanes, keys, explores), batch_size=side_by_side(process))
    return lanes, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), targets), jax.tree.map(jnp.sum, said)


def _choose(
    process: Process, settings: Settings, public: PublicState, costs: Array, key: PRNGKey, explores: Flag
) -> Index:
    """The best action; now and then a random sensor, even where stopping is better."""
    explore_key, sensor_key = jax.random.split(key)
    cheapest = jnp.min(costs)
    greedy = jnp.where(cheapest < process.stop_cost(public.belief), jnp.argmin(costs), process.sensors)
    random = jax.random.categorical(sensor_key, jnp.where(public.allowed[:-1], 0.0, -jnp.inf))
    wander = explores & (jax.random.uniform(explore_key) < settings.explore) & jnp.any(public.allowed[:-1])
    return jnp.where(wander, random, greedy)


@eqx.filter_jit
def _fit(process: Process, settings: Settings, state: IterationState, targets: Targets, key: PRNGKey, left: Scalar):
    """Several passes over the batch; the residual is that of the networks before.

    The larger one of the network that is fitted and of the average, which lags behind and is what the policy uses.
    """
    size = len(targets.costs)
    residuals = [jnp.mean(jnp.abs(errors(process, n, targets).least)) for n in (state.fit.network, state.average)]
    residual = jnp.max(jnp.stack(residuals))
    orders = jax.vmap(jax.random.permutation, (0, None))(jax.random.split(key, settings.epochs), size)
    rows = orders.reshape(settings.epochs * settings.minibatches, -1)
    batches = jax.tree.map(lambda x: x[rows], targets)
    fit = fitted(process, state.fit, batches, settings.learning_rate * left)
    return fit, averaged(state.average, fit.network, settings.memory), residual
