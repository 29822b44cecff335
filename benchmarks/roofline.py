"""Training as a share of the fastest matrix product that this machine does, and where the rest goes. In one run.

Counted are the products of actor and critic alone: everything else (the process, features, activations, Adam) is what
keeps training below the roof.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from benchmarks.catalogue import Measured
from reticent import Confidence, Process, Task, synthetic
from reticent.policy.actor import Features
from reticent.policy.network import Network
from reticent.solve.actor_critic import A2C, Recipe, advance, initialise

SIZES, ROWS, UPDATES, REPEATS = (512, 1024, 2048), 1024, 8, 5
RECIPES = {
    "ppo, 2 x 128": Recipe(),
    "ppo, 2 x 256": replace(Recipe(), width=256),
    "a2c, 2 x 256": A2C,
}


def roofline() -> Measured:
    best = max(
        2 * size**3 / _seconds(lambda size=size: _product(jnp.ones((size, size), jnp.float32))) for size in SIZES
    )
    rows = []

    def add(what: str, speed: float | None, rate: float) -> None:
        row = {"what": what, "environment_steps_per_second": speed}
        rows.append({**row, "gflop_per_second": rate / 1e9, "share": rate / best})

    add("best matrix product", None, best)

    process = Process.of(Task(synthetic(), Confidence(0.9)))
    paces = jnp.asarray(UPDATES), jnp.asarray(100)
    for name, recipe in RECIPES.items():
        inputs, outputs = Features(process, recipe.inputs).size, process.sensors + 1
        network = Network(inputs, outputs, recipe.width, jax.random.key(0))
        seen = jnp.ones((ROWS, inputs), jnp.float32)
        gradient = _seconds(lambda network=network, seen=seen: _gradient(network, seen))
        add(f"gradient of one network, {name}", None, ROWS * _learning(inputs, recipe.width, outputs) / gradient)
        state = initialise(process, recipe, 0)
        run = lambda recipe=recipe, state=state: advance(process, recipe, state, *paces)  # noqa: E731
        speed = UPDATES * recipe.steps_per_update / _seconds(run)
        add(f"all of training, {name}", speed, speed * _operations(recipe, inputs, outputs))
    notes = [
        f"32-bit. Products of square matrices of up to {max(SIZES)}; the gradient is of {ROWS} rows through one "
        "network, activations included: what training could reach if it did nothing but learn. Training counts the "
        "products of playing, weighing and learning.",
    ]
    return rows, notes


def _forward(inputs: int, width: int, outputs: int) -> int:
    """Operations of one row through one network."""
    return 2 * (inputs * width + width * width + width * outputs)


def _learning(inputs: int, width: int, outputs: int) -> int:
    """Forward, and backward to weights and to inputs; nobody needs the gradient of the first layer's inputs."""
    return 3 * _forward(inputs, width, outputs) - 2 * inputs * width


def _operations(recipe: Recipe, inputs: int, outputs: int) -> int:
    """Operations per environment step: the actor plays; the critic weighs where it led from and to; both learn."""
    actor, critic = (inputs, recipe.width, outputs), (inputs, recipe.width, 1)
    playing = _forward(*actor) + 2 * _forward(*critic)
    return playing + recipe.epochs * (_learning(*actor) + _learning(*critic))


@jax.jit
def _product(matrix: jax.Array) -> jax.Array:
    return matrix @ matrix


@eqx.filter_jit
def _gradient(network: Network, seen: jax.Array) -> Network:
    return jax.grad(lambda network: jnp.mean(jax.vmap(network)(seen) ** 2))(network)


def _seconds(run: Callable[[], Any]) -> float:
    """The fastest of some runs after one that compiles."""
    jax.block_until_ready(run())
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - started)
    return min(times)
