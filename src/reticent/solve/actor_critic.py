"""Actor-critic agents, compiled end to end: PPO, and the paper's A2C.

The recipe "a2c" is the paper's agent: one gradient step per batch on the TD(0) error, 2 x 256 leaky ReLU, the belief
as input. The recipe "ppo" reuses each batch for several steps with a clipped likelihood ratio, traces returns further,
and sees more. Costs are minimised: the critic descends on the squared error, and the actor's loss
is + log pi * advantage (the paper prints the opposite signs).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Float

from reticent.policy.actor import Actor, Inputs, Seen, features_of, masked_logits
from reticent.policy.network import Network
from reticent.process.process import State
from reticent.process.rollout import AnyProcess, begin
from reticent.process.rollout import advance as advance_process
from reticent.solve.multiplier import Price, ascend, finally_priced, free, leakage, priced
from reticent.solve.returns import lambda_advantages
from reticent.types import Array, Flag, Index, PRNGKey, Scalar


@dataclass(frozen=True)
class Recipe:
    """How to train.

    `trace` is the lambda of the lambda-returns, `clip` the range of the likelihood ratio, `cost_scale` the share of
    the error penalty that counts as one, `width` that of both hidden layers. Learning rates and entropy bonus fall
    linearly to zero when `anneal` is set; a negative rate ascends. `greedy`: the trained policy takes the likeliest
    action, else it draws.
    """

    environments: int = 256
    rollout: int = 16
    epochs: int = 4
    minibatches: int = 4
    clip: float = 0.2
    trace: float = 0.95
    discount: float = 1.0
    entropy: float = 0.03
    actor_rate: float = 3e-3
    critic_rate: float = 3e-3
    gradient_norm: float = 0.5
    cost_scale: float = 0.2
    width: int = 128
    inputs: Inputs = "rich"
    normalise: bool = True
    anneal: bool = True
    greedy: bool = True

    @property
    def steps_per_update(self) -> int:
        """Environment steps that one update consumes."""
        return self.environments * self.rollout

    def updates(self, steps: int) -> int:
        """Updates that a training of at least so many environment steps takes."""
        return -(-steps // self.steps_per_update)

    def steps_run(self, steps: int) -> int:
        """The environment steps of such a training: those asked for, rounded up to whole updates."""
        return self.updates(steps) * self.steps_per_update


PPO = Recipe()
# One step on the whole batch: the likelihood ratio is one, so there is nothing to clip.
A2C = Recipe(
    epochs=1,
    minibatches=1,
    trace=0.0,
    discount=0.99,
    entropy=0.1,
    rollout=4,
    width=256,
    inputs="belief",
    actor_rate=1e-3,
    critic_rate=1e-3,
    normalise=False,
    anneal=False,
    greedy=False,
)
# PPO for problems that go on: the discounted cost stands for that of the long run.
LONG_RUN = Recipe(
    environments=64, rollout=32, discount=0.98, trace=0.95, entropy=0.01, actor_rate=2e-3, critic_rate=2e-3
)
RECIPES: dict[str, Recipe] = {"ppo": PPO, "a2c": A2C}
RecipeName = Literal["ppo", "a2c"]
# After each of so many pieces a training says how it goes and may be interrupted.
PIECES = 20


class Networks(eqx.Module):
    """Actor and critic."""

    actor: Network
    critic: Network


class TrainState(eqx.Module):
    """Everything that training carries on: enough to stop and go on later with the same result.

    `price` is what a bit about the secret costs, learned along with the networks under "multiplier" only.
    """

    networks: Networks
    optimiser: optax.OptState
    environments: State
    key: Array
    update: Index
    price: Price | None


class Progress(eqx.Module):
    """How training goes, averaged over one call of `advance`."""

    cost_per_episode: Float[Array, ""]
    cost_per_step: Float[Array, ""]
    entropy: Float[Array, ""]
    critic_loss: Float[Array, ""]


class Played(eqx.Module):
    """One step of play: what the networks see of the public state before and after it, and what was done and paid."""

    seen: Float[Array, " F"]
    reached: Float[Array, " F"]
    allowed: Array
    action: Index
    log_probability: Float[Array, ""]
    cost: Scalar
    spent_bits: Scalar
    terminated: Flag
    truncated: Flag


class Batch(eqx.Module):
    """One row per environment step, ready for the loss."""

    features: Float[Array, "B F"]
    allowed: Array
    action: Array
    log_probability: Float[Array, " B"]
    advantage: Float[Array, " B"]
    target: Float[Array, " B"]


def initialise(process: AnyProcess, recipe: Recipe, seed: int) -> TrainState:
    """Fresh networks, optimiser and environments."""
    actor_key, critic_key, environment_key, key = jax.random.split(jax.random.key(seed), 4)
    size = features_of(process, recipe.inputs).size
    networks = Networks(
        actor=Network(size, process.sensors + 1, recipe.width, actor_key),
        critic=Network(size, 1, recipe.width, critic_key),
    )
    optimiser = _optimiser(recipe).init(networks)
    environments = begin(process, jax.random.split(environment_key, recipe.environments))
    return TrainState(networks, optimiser, environments, key, jnp.zeros((), int), free(process))


@eqx.filter_jit
@eqx.debug.assert_max_traces(max_traces=None)
def advance(
    process: AnyProcess, recipe: Recipe, state: TrainState, updates: Index, total: Index
) -> tuple[TrainState, Progress]:
    """`updates` updates in one compiled loop; `total` sets the pace at which rates fall to zero."""

    def one(_: Index, carry: tuple[TrainState, Progress]) -> tuple[TrainState, Progress]:
        state, summed = carry
        state, progress = _update(process, recipe, state, state.update / total)
        return state, jax.tree.map(jnp.add, summed, progress)

    nothing = Progress(*(jnp.zeros(()) for _ in range(4)))
    state, summed = jax.lax.fori_loop(0, updates, one, (state, nothing))
    return state, jax.tree.map(lambda x: x / updates, summed)


def train(
    process: AnyProcess,
    steps: int = 1_000_000,
    seed: int = 0,
    recipe: Recipe | RecipeName = "ppo",
    report: Callable[[int, Progress], None] | None = None,
) -> Actor:
    """A policy for the process, from `steps` environment steps, rounded up to whole updates.

    `report` is called with the steps done and how it goes, at most twenty times.
    """
    if isinstance(recipe, str):
        recipe = RECIPES[recipe]
    state = initialise(process, recipe, seed)
    for reached, progress in training(process, recipe, state, steps):
        state = reached
        if report:
            report(int(state.update) * recipe.steps_per_update, progress)
    return policy_of(process, recipe, state)


def training(process: AnyProcess, recipe: Recipe, state: TrainState, steps: int):
    """Yield (state, progress) after each of up to twenty pieces, until all updates are done; the last may be short."""
    total = recipe.updates(steps)
    piece = -(-total // PIECES)
    while (done := int(state.update)) < total:
        updates = jnp.asarray(min(piece, total - done))
        state, progress = advance(process, recipe, state, updates, jnp.asarray(total))
        yield state, progress


def policy_of(process: AnyProcess, recipe: Recipe, state: TrainState) -> Actor:
    """The policy that the training has reached; what it sees of the process is at the learned multiplier."""
    process = finally_priced(process, state.price)
    return Actor(state.networks.actor, features_of(process, recipe.inputs), recipe.greedy)


def _optimiser(recipe: Recipe) -> Any:  # optax's types do not know Equinox modules
    return optax.chain(optax.clip_by_global_norm(recipe.gradient_norm), optax.scale_by_adam())


def _update(process: AnyProcess, recipe: Recipe, state: TrainState, done: Array) -> tuple[TrainState, Progress]:
    """Play, weigh, learn."""
    process = priced(process, state.price)
    play_key, learn_key, key = jax.random.split(state.key, 3)
    features = features_of(process, recipe.inputs)
    keys = jax.random.split(play_key, recipe.environments)
    play = jax.vmap(_play, in_axes=(None, None, 0, 0, None))
    environments, played = play(features, state.networks.actor, keys, state.environments, recipe.rollout)
    batch = _weigh(features, recipe, state.networks.critic, played)
    left = jnp.where(recipe.anneal, 1.0 - done, 1.0).astype(jnp.float32)
    networks, optimiser, losses = _learn(recipe, state, batch, learn_key, left)
    ended = played.terminated | played.truncated
    per_episode = jnp.sum(played.cost) / jnp.maximum(jnp.sum(ended), 1)
    progress = Progress(per_episode, jnp.mean(played.cost), losses[0], losses[1])
    price = state.price and ascend(process, state.price, leakage(ended, played.spent_bits), 1.0 - done)
    return TrainState(networks, optimiser, environments, key, state.update + 1, price), progress


def _play(features: Seen, actor: Network, key: PRNGKey, state: State, length: int) -> tuple[State, Played]:
    """`length` steps from the state on, as in a rollout; what the networks see is computed once for every state."""
    process = features.process
    # Every episode starts at the same public state.
    first = features(process.init(key).public)

    def one(carry: tuple[State, Array], key: PRNGKey) -> tuple[tuple[State, Array], Played]:
        state, seen = carry
        act_key, key = jax.random.split(key)
        allowed = state.public.allowed
        logits = masked_logits(actor, seen, allowed)
        action = jax.random.categorical(act_key, logits)
        state, moment = advance_process(process, key, state, action)
        reached, ended = features(moment.after), moment.terminated | moment.truncated
        chance = _log_probability(logits, action)
        costs = moment.cost, moment.after.spent_bits
        played = Played(seen, reached, allowed, action, chance, *costs, moment.terminated, moment.truncated)
        return (state, jnp.where(ended, first, reached)), played

    (state, _), played = jax.lax.scan(one, (state, features(state.public)), jax.random.split(key, length))
    return state, played


def _weigh(features: Seen, recipe: Recipe, critic: Network, played: Played) -> Batch:
    """Advantages and targets of the played steps [N T], as one row per step."""
    shape = played.action.shape
    rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), played)
    values, next_values = (jax.vmap(critic)(x)[:, 0] for x in (rows.seen, rows.reached))
    costs = (rows.cost / (recipe.cost_scale * features.process.objective.error_penalty)).astype(jnp.float32)
    steps = [x.reshape(shape) for x in (costs, values, next_values, rows.terminated, rows.truncated)]
    weigh = jax.vmap(lambda c, v, w, end, cut: lambda_advantages(c, v, w, end, cut, recipe.discount, recipe.trace))
    advantages = weigh(*steps).reshape(-1)
    return Batch(
        features=rows.seen,
        allowed=rows.allowed,
        action=rows.action,
        log_probability=rows.log_probability,
        advantage=standardise(advantages) if recipe.normalise else advantages,
        target=advantages + values,
    )


def standardise(x: Float[Array, " B"]) -> Float[Array, " B"]:
    """Mean zero, deviation one."""
    return (x - x.mean()) / (x.std() + 1e-8)


def _learn(recipe: Recipe, state: TrainState, batch: Batch, key: PRNGKey, left: Array):
    """Several passes over the batch in shuffled minibatches."""

    def descend(carry, rows):
        networks, optimiser = carry
        part = jax.tree.map(lambda x: x[rows], batch)
        gradient, losses = jax.grad(_loss, has_aux=True)(networks, part, recipe, left)
        direction, optimiser = _optimiser(recipe).update(gradient, optimiser)
        step = Networks(
            _scaled(direction.actor, -recipe.actor_rate * left), _scaled(direction.critic, -recipe.critic_rate * left)
        )
        return (eqx.apply_updates(networks, step), optimiser), losses

    orders = jax.vmap(jax.random.permutation, (0, None))(jax.random.split(key, recipe.epochs), batch.action.size)
    rows = orders.reshape(recipe.epochs * recipe.minibatches, -1)
    (networks, optimiser), losses = jax.lax.scan(descend, (state.networks, state.optimiser), rows)
    return networks, optimiser, jax.tree.map(jnp.mean, losses)


def _loss(networks: Networks, batch: Batch, recipe: Recipe, left: Array):
    """Actor: clipped ratio times advantage (a cost, so it is descended). Critic: half the squared error."""
    logits = jax.vmap(masked_logits, (None, 0, 0))(networks.actor, batch.features, batch.allowed)
    ratio = jnp.exp(_log_probability(logits, batch.action) - batch.log_probability)
    clipped = jnp.clip(ratio, 1 - recipe.clip, 1 + recipe.clip)
    actor_loss = jnp.mean(jnp.maximum(ratio * batch.advantage, clipped * batch.advantage))
    values = jax.vmap(networks.critic)(batch.features)[:, 0]
    critic_loss = 0.5 * jnp.mean((batch.target - values) ** 2)
    probability = jax.nn.softmax(logits)
    entropy = -jnp.mean(jnp.sum(probability * jnp.log(jnp.maximum(probability, 1e-20)), axis=-1))
    return actor_loss + 0.5 * critic_loss - recipe.entropy * left * entropy, (entropy, critic_loss)


def _scaled(network: Network, factor: Array) -> Network:
    return jax.tree.map(lambda x: factor * x, network)


def _log_probability(logits: Array, action: Array) -> Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[..., None], axis=-1)[..., 0]
