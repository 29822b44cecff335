"""Several bounds at once: one after the other, vmapped in one program, or in processes of one core each. In one run."""

import multiprocessing
import os
import time
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from benchmarks.catalogue import Measured
from reticent import Confidence, Process, Task, synthetic
from reticent.solve.actor_critic import Recipe, TrainState, advance, initialise

LIMITS, UPDATES, TOTAL, REPEATS = (0.8, 0.9, 0.99), 12, 240, 3
RECIPE = Recipe()


def batching() -> Measured:
    processes = [Process.of(Task(synthetic(), Confidence(limit))) for limit in LIMITS]
    states = [initialise(process, RECIPE, 0) for process in processes]
    together = eqx.tree_at(lambda process: process.limit, processes[0], jnp.asarray(LIMITS))
    only_limit = eqx.tree_at(
        lambda process: process.limit, jax.tree.map(lambda _: None, processes[0]), 0, is_leaf=lambda x: x is None
    )
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)

    def in_turn() -> None:
        for process, state in zip(processes, states, strict=True):
            jax.block_until_ready(_train(process, state))

    def vmapped() -> None:
        jax.block_until_ready(eqx.filter_vmap(_train, in_axes=(only_limit, 0))(together, stacked))

    cores = range(os.cpu_count() or 1)
    with multiprocessing.get_context("spawn").Pool(len(cores)) as pool:
        alone = pool.map(_on_one_core, cores, chunksize=1)
    speeds = {
        "one after the other": len(LIMITS) * _speed(in_turn),
        "vmapped over bounds": len(LIMITS) * _speed(vmapped),
        f"{len(cores)} processes of one core each": sum(alone),
    }
    slowest = min(speeds.values())
    rows = [
        {"how": name, "steps_per_second_in_all": speed, "times_the_slowest": speed / slowest}
        for name, speed in speeds.items()
    ]
    return rows, ["Studies use the last: it needs no equal schedules, and each bound is saved as soon as it is done."]


def _train(process: Process, state: TrainState) -> jax.Array:
    return advance(process, RECIPE, state, jnp.asarray(UPDATES), jnp.asarray(TOTAL))[0].update


def _speed(run: Callable[[], None]) -> float:
    """Environment steps per second of one bound, after a first run that compiles."""
    run()
    started = time.perf_counter()
    for _ in range(REPEATS):
        run()
    return REPEATS * UPDATES * RECIPE.steps_per_update / (time.perf_counter() - started)


def _on_one_core(core: int) -> float:
    os.sched_setaffinity(0, {core})
    process = Process.of(Task(synthetic(), Confidence(LIMITS[0])))
    state = initialise(process, RECIPE, 0)
    return _speed(lambda: jax.block_until_ready(_train(process, state)))
