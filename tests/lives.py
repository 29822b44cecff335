"""Hidden pairs that move by a known chain, and what random sensors sent of them, now and then nothing."""

import numpy as np
import polars as pl

from reticent.audit.moving_traces import MovingTraces
from reticent.audit.traces import PADDING, Names
from reticent.problem.model import Model
from reticent.problem.synthetic import two_binary_sensors

MOVES = {"secret": [[0.97, 0.03], [0.03, 0.97]], "useful": [[0.9, 0.1], [0.1, 0.9]]}
MODEL = two_binary_sensors().moving(MOVES)


def pairs_of(model: Model, people: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Paths of the chain, [people, steps]."""
    moves = model.dynamics.reshape(model.prior.size, -1).cumsum(1)
    path = [rng.choice(model.prior.size, people, p=model.prior.reshape(-1))]
    for _ in range(steps - 1):
        path.append((moves[path[-1]] > rng.random((people, 1))).argmax(1))
    return np.stack(path, axis=1)


def played(people: int, steps: int, seed: int = 0, model: Model = MODEL) -> MovingTraces:
    """One episode of every person; a third of the steps are silent, and readings are sent as they are."""
    rng = np.random.default_rng(seed)
    secret, useful = np.divmod(pairs_of(model, people, steps, rng).reshape(-1), len(model.useful))
    sensor = rng.integers(PADDING, len(model.sensors), size=len(secret))
    silent, asked = sensor == PADDING, np.maximum(sensor, 0)
    symbol = (model.channel[asked, secret, useful].cumsum(1) > rng.random((len(secret), 1))).argmax(1)
    person = np.repeat(np.arange(people), steps)
    return MovingTraces(
        sensor=sensor,
        symbol=np.where(silent, PADDING, symbol),
        episode=person,
        person=person,
        secret=secret,
        useful=useful,
        names=Names(model.sensors, model.symbols, model.secrets, model.useful),
        likelihood=np.where(silent[:, None, None], 1.0, model.channel[asked, :, :, symbol]),
    )


def table_of(traces: MovingTraces) -> pl.DataFrame:
    """The same as rows of a file."""
    names = traces.names

    def named(values, known, none):
        return [none if value == PADDING else known[value] for value in values]

    return pl.DataFrame(
        {
            "episode": traces.episode,
            "step": traces.step,
            "sensor": named(traces.sensor, names.sensors, "silent"),
            "symbol": named(traces.symbol, names.symbols, None),
            "secret": named(traces.secret, names.secrets, None),
            "useful": named(traces.useful, names.useful, None),
            "person": [f"p{person:03d}" for person in traces.person],
        }
    )
