"""How cost grows with the size of a problem: one size at a time, the others as in the synthetic problem."""

import sys
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.catalogue import Measured, Rows
from reticent import Confidence, Model, Process, Task
from reticent.policy.policy import RandomSensor
from reticent.problem.enforcement import Coarsen
from reticent.process.rollout import begin, rollout, simulate
from reticent.solve.actor_critic import Recipe, advance, initialise

# Secrets and useful values (as many of each), sensors, symbols.
BASE = {"secrets": 3, "sensors": 3, "symbols": 50}
SIZES = {"secrets": (2, 3, 6, 9), "sensors": (2, 3, 8, 16), "symbols": (10, 50, 200, 800)}
AXES = {"secrets": "pairs (s, u)", "sensors": "sensors", "symbols": "symbols"}
LANES, UPDATES = 256, 4
RECIPE = Recipe()


def scale() -> Measured:
    measured: dict[tuple[int, ...], dict[str, float]] = {}
    rows = []
    for axis, sizes in SIZES.items():
        for size in sizes:
            shape = {**BASE, axis: size}
            if (key := tuple(shape.values())) not in measured:
                measured[key] = _speeds(_model(**shape))
            rows.append({"grows": AXES[axis], "size": size**2 if axis == "secrets" else size, **measured[key]})
            print(rows[-1], file=sys.stderr, flush=True)
    notes = [
        "Random problems (Dirichlet channels), 9 pairs, 3 sensors and 50 symbols unless said otherwise, L_B 0.9. "
        "Releases per second of a random policy in the compiled process under penalty and under coarsening, and "
        "environment steps per second of training the agent (default recipe), all without compilation. Of episodes: "
        "the seconds that so many take.",
    ]
    return rows + _episodes(), notes


def _model(secrets: int, sensors: int, symbols: int) -> Model:
    rng = np.random.default_rng(0)
    channel = rng.dirichlet(np.ones(symbols), (sensors, secrets, secrets))
    prior = np.full((secrets, secrets), 1 / secrets**2)

    def names(letter: str, count: int) -> tuple[str, ...]:
        return tuple(f"{letter}{i}" for i in range(count))

    pairs = names("s", secrets), names("u", secrets)
    return Model(prior, channel, *pairs, names("a", sensors), names("z", symbols))


def _speeds(model: Model) -> dict[str, float]:
    penalty = Process.of(Task(model, Confidence(0.9)))
    coarsen = Process.of(Task(model, Confidence(0.9), enforcement=Coarsen(), horizon=10))
    return {
        "releases_per_second_penalty": _play(penalty, 64),
        "releases_per_second_coarsen": _play(coarsen, 3),
        "training_steps_per_second": _training(penalty),
    }


def _play(process: Process, steps: int) -> float:
    """Releases per second, in lanes side by side. A policy that is sure early keeps all problems' episodes as short."""
    act, keys = RandomSensor(jnp.asarray(0.9)).act, jax.random.split(jax.random.key(0), LANES)
    states = begin(process, keys)

    @eqx.filter_jit
    def play(process: Process) -> jax.Array:
        _, moments = jax.vmap(lambda key, state: rollout(process, act, key, state, steps))(keys, states)
        return jnp.sum(moments.action < process.sensors)

    return float(play(process)) / _seconds(lambda: jax.block_until_ready(play(process)))


def _training(process: Process) -> float:
    state = initialise(process, RECIPE, 0)

    def run() -> None:
        jax.block_until_ready(advance(process, RECIPE, state, jnp.asarray(UPDATES), jnp.asarray(100)))

    return UPDATES * RECIPE.steps_per_update / _seconds(run)


def _episodes() -> Rows:
    """Seconds against the number of episodes."""
    process = Process.of(Task(_model(**BASE), Confidence(0.9)))
    act = RandomSensor(jnp.asarray(0.9)).act
    rows = []
    for count in (8_192, 32_768, 131_072):
        seconds = _seconds(lambda count=count: simulate(process, act, count, 0))
        rows.append({"grows": "episodes", "size": count, "seconds": seconds})
    return rows


def _seconds(run: Callable[[], Any]) -> float:
    """The faster of two runs after one that compiles."""
    run()
    times = []
    for _ in range(2):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)
