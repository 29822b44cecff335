"""How cost grows with the size of a problem: one size at a time, the others as in the synthetic problem."""

import time
from collections.abc import Callable
from typing import Any

import altair as alt
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from benchmarks.record import FOLDER, save
from reticent import Confidence, Process, ReleaseModel, Task
from reticent.policy.policy import RandomSensor
from reticent.problem.enforcement import Coarsen
from reticent.process.rollout import begin, rollout, simulate
from reticent.solve.a2c import Recipe, advance, initialise

# Secrets and useful values (as many of each), sensors, symbols.
BASE = {"secrets": 3, "sensors": 3, "symbols": 50}
SIZES = {"secrets": (2, 3, 6, 9), "sensors": (2, 3, 8, 16), "symbols": (10, 50, 200, 800)}
AXES = {"secrets": "pairs (s, u)", "sensors": "sensors", "symbols": "symbols"}
LANES, UPDATES = 256, 4
RECIPE = Recipe()


def main() -> None:
    points = []
    measured: dict[tuple[int, ...], dict[str, float]] = {}
    for axis, sizes in SIZES.items():
        for size in sizes:
            shape = {**BASE, axis: size}
            key = tuple(shape.values())
            measured.setdefault(key, _speeds(_model(**shape)))
            shown = size**2 if axis == "secrets" else size
            points += [{"axis": AXES[axis], "size": shown, "what": w, "rate": r} for w, r in measured[key].items()]
            print(axis, size, measured[key], flush=True)
    points += _episodes()
    whats = list(dict.fromkeys(point["what"] for point in points if point["axis"] in AXES.values()))
    rows = []
    for axis in AXES.values():
        for size in dict.fromkeys(p["size"] for p in points if p["axis"] == axis):
            rates = {p["what"]: p["rate"] for p in points if (p["axis"], p["size"]) == (axis, size)}
            rows.append([axis, str(size), *(f"{rates[what]:,.0f}" for what in whats)])
    notes = [
        "Random problems (Dirichlet channels), 9 pairs, 3 sensors and 50 symbols unless said otherwise, L_B 0.9. "
        "Releases per second of a random policy in the compiled process under penalty and under coarsening, and "
        "environment steps per second of training the agent (default recipe), all without compilation.",
        "Episodes: "
        + "; ".join(f"{p['size']:,} in {p['size'] / p['rate']:.2f} s" for p in points if p["axis"] == "episodes")
        + ".",
    ]
    save("scale", "How cost grows with the problem", ["size of", "is", *whats], rows, notes)
    _figure(points).save(FOLDER.parent / "docs" / "scale.png", scale_factor=2)


def _model(secrets: int, sensors: int, symbols: int) -> ReleaseModel:
    rng = np.random.default_rng(0)
    channel = rng.dirichlet(np.ones(symbols), (sensors, secrets, secrets))
    prior = np.full((secrets, secrets), 1 / secrets**2)

    def names(letter: str, count: int) -> tuple[str, ...]:
        return tuple(f"{letter}{i}" for i in range(count))

    pairs = names("s", secrets), names("u", secrets)
    return ReleaseModel(prior, channel, *pairs, names("a", sensors), names("z", symbols))


def _speeds(model: ReleaseModel) -> dict[str, float]:
    penalty = Process.of(Task(model, Confidence(0.9)))
    coarsen = Process.of(Task(model, Confidence(0.9), enforcement=Coarsen(), horizon=10))
    return {
        "releases/s, penalty": _play(penalty, 64),
        "releases/s, coarsen": _play(coarsen, 3),
        "training steps/s": _training(penalty),
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


def _episodes() -> list[dict[str, Any]]:
    """Episodes per second against how many are asked for."""
    process = Process.of(Task(_model(**BASE), Confidence(0.9)))
    act = RandomSensor(jnp.asarray(0.9)).act
    points = []
    for count in (8_192, 32_768, 131_072):
        seconds = _seconds(lambda count=count: simulate(process, act, count, 0))
        points.append({"axis": "episodes", "size": count, "what": "episodes/s", "rate": count / seconds})
    return points


def _seconds(run: Callable[[], Any]) -> float:
    """The faster of two runs after one that compiles."""
    run()
    times = []
    for _ in range(2):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def _figure(points: list[dict[str, Any]]) -> alt.HConcatChart:
    def panel(axis: str) -> alt.Chart:
        here = pl.DataFrame([point for point in points if point["axis"] == axis])
        ticks = alt.Axis(values=here["size"].unique().to_list())
        return (
            alt.Chart(here)
            .mark_line(point=True)
            .encode(
                x=alt.X("size:Q", scale=alt.Scale(type="log", nice=False, padding=12), title=axis, axis=ticks),
                y=alt.Y("rate:Q", scale=alt.Scale(type="log"), title="per second", axis=alt.Axis(format="~s")),
                color=alt.Color("what:N", title=None, scale=alt.Scale(range=["#c0392b", "#2563a8", "#111111"])),
            )
            .properties(width=230, height=220)
        )

    return alt.hconcat(*(panel(axis) for axis in AXES.values()))


if __name__ == "__main__":
    main()
