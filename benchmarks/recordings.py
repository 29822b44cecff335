"""The guarantee on people who were never learned from: still or moving against in an elevator or not (DSA), and the
same table for posture against gender (MotionSense).

Each person's turn comes to be measured. Of the others, some are fitted to, and the attackers are trained on traces of
the rest: they see the policy's own traces, but never the measured people. The bound and the longest episode are chosen
on the attackers' people.
"""

import os
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from benchmarks.catalogue import Measured
from reticent import Confidence, Objective, OneStepLookahead, Process, Task
from reticent.audit.classifiers import retrained
from reticent.audit.measures import balanced_accuracy
from reticent.audit.play import play
from reticent.audit.traces import Names, Traces
from reticent.data.episodes import episodes_of
from reticent.data.load import Source, load
from reticent.data.portions import portions, rotations
from reticent.data.readings import ReadingKind, Readings, readings, uniform_prior
from reticent.fit.model import fit_model
from reticent.problem.codebook import Codebook
from reticent.problem.enforcement import Coarsen
from reticent.process.source import FromCodes
from reticent.report.recordings import recordings_rows
from reticent.report.results import read_results
from reticent.study.learned import Conditions
from reticent.study.plan import plan
from reticent.study.recordings import Recordings
from reticent.study.run import Done, on_all_cores, prepare, run_study
from reticent.study.spec import SHIPPED, read_spec

OBJECTIVE = Objective(time_cost=1.0, error_penalty=200.0)
LIMITS, HORIZONS = (0.52, 0.55), (3, 5)
EPISODES = 4096
LEAST_USEFUL = 0.9


def data() -> Path:
    """The folder of recordings, where RETICENT_DATA says it is."""
    if not (folder := Path(os.environ.get("RETICENT_DATA", ""))).is_dir() or folder == Path():
        raise SystemExit("No recordings: set RETICENT_DATA to the folder that holds them. Nothing was measured.")
    return folder


def study_dsa() -> Measured:
    """The paper's policies beside the guarantee, everybody measured once."""
    recordings = Recordings.of(Source("dsa", data()), ReadingKind(), Conditions())
    efforts = {"episodes": EPISODES, "seeds": recordings.seeds}
    study = plan(read_spec(SHIPPED / "recordings-quick.toml", recordings, efforts))
    with tempfile.TemporaryDirectory() as folder:
        prepare(study, Path(folder))
        for event in run_study(study, Path(folder), on_all_cores):
            if isinstance(event, Done):
                print(event.cell.name, f"of {len(study.cells)}", file=sys.stderr, flush=True)
        results = recordings_rows(read_results(Path(folder)))
    retrained = ("retrained_useful", "retrained_secret")
    spread = ("violation_rate", "balanced_useful", "balanced_secret")
    results = results.with_columns((pl.col(retrained[0]) - pl.col(retrained[1])).alias("gap"))
    ends = [f"{name}_{end}" for name in (*retrained, "gap") for end in ("low", "high")]
    rows = results.group_by("policy", "limit", maintain_order=True).agg(
        pl.col("releases", *retrained, "gap", *spread).mean(),
        pl.col(*ends).first(),
        pl.col(*spread).std().name.suffix("_sd"),
    )
    notes = [
        "`reticent reproduce` with fewer bounds and steps: PPO on the LSTM belief (belief-PDRP, MI-PDRP, whose limit "
        "is in bits), no protection (ten random readings) and the guarantee with bounds that nobody chose, on people "
        "never learned from, with intervals by bootstrap over people. Retrained: the better of two attackers trained "
        "on the policy's own traces; balanced: the paper's fixed LSTM; violations: episodes in which the belief acted "
        "on crossed.",
    ]
    return rows.to_dicts(), notes


def dsa() -> Measured:
    return _measure("dsa")


def motionsense() -> Measured:
    return _measure("motionsense")


def _measure(name) -> Measured:
    recorded = readings(load(Source(name, data())))
    turns = rotations(recorded)
    found: dict[str, list[tuple[float, float]]] = {}
    chosen = []
    for turn in range(turns):
        who = portions(recorded, turn)
        people = who.predictor + who.policy + who.adversary
        half = len(people) // 2
        fitted, attackers = people[:half], people[half:]
        for label, result in _without_guarantee(recorded, attackers, who.measured, turn).items():
            found.setdefault(label, []).append(result)
        choice, result = _guaranteed(recorded, fitted, attackers, who.measured, turn)
        chosen.append(choice)
        found.setdefault("guarantee (coarsen), chosen bound", []).append(result)
        print(name, turn, choice, {k: v[-1] for k, v in found.items()}, file=sys.stderr, flush=True)
    rows = []
    for label, pairs in found.items():
        useful, secret = np.array(pairs).T
        row: dict[str, Any] = {"policy": label}
        for measure, values in (("useful", useful), ("secret", secret), ("gap", useful - secret)):
            row |= {measure: values.mean(), f"{measure}_sd": values.std(ddof=1)}
        rows.append(row)
    times = {choice: chosen.count(choice) for choice in dict.fromkeys(chosen)}
    picked = ", ".join(f"L_B {limit:g} with at most {h} readings ({n} of {turns})" for (limit, h), n in times.items())
    notes = [
        f"Balanced accuracies of the better of two attackers (logistic regression, boosted trees) retrained on the "
        f"policy's own traces, on people nobody learned from: mean and standard deviation over {turns} rotations by "
        f"person. Estimates. One reading is one second. Chosen on other people: {picked}.",
    ]
    return rows, notes


def _without_guarantee(recorded: Readings, attackers, measured, seed: int) -> dict[str, tuple[float, float]]:
    """Random sensors and single sensors, raw readings."""
    plans = {"random sensor, 1 reading": (None, 1), "random sensor, 10 readings": (None, 10)}
    plans |= {f"{name}, 1 reading": (i, 1) for i, name in enumerate(recorded.sensors)}
    return {
        label: _attacked(*(_raw(recorded.of(who), *plan, 2 * seed + i) for i, who in enumerate((attackers, measured))))
        for label, plan in plans.items()
    }


def _raw(own: Readings, sensor: int | None, length: int, seed: int) -> Traces:
    keys = jax.random.split(jax.random.key(seed), EPISODES)
    rng = np.random.default_rng(seed)
    sensors, useful_values = len(own.sensors), len(own.useful_values)
    seen = np.unique(own.secret * useful_values + own.useful)
    pair = rng.choice(seen, EPISODES)
    row = np.asarray(jax.vmap(episodes_of(own, length).begin)(keys, jnp.asarray(pair)))
    chosen = rng.integers(sensors, size=(EPISODES, length)) if sensor is None else np.full((EPISODES, length), sensor)
    return Traces(
        sensor=chosen,
        symbol=None,
        reading=own.values[row[:, None] + np.arange(length), chosen],
        stopped=np.ones(EPISODES, bool),
        person=own.person[row],
        secret=pair // useful_values,
        useful=pair % useful_values,
        names=Names(own.sensors, (), own.secrets, own.useful_values),
    )


def _guaranteed(recorded: Readings, fitted, attackers, measured, seed: int):
    """The bound and horizon of the widest gap on the attackers' people, and what they do on the measured."""
    fitted_to = recorded.of(fitted)
    model = fit_model(fitted_to, seed=seed, prior=uniform_prior(fitted_to))
    codebook = Codebook.of(model)

    def traces(people, limit: float, horizon: int, number: int) -> Traces:
        task = Task(model, Confidence(limit), OBJECTIVE, Coarsen(), horizon)
        process, own = Process.of(task), recorded.of(people)
        # The same starts whatever the horizon, so that one compiled program serves all.
        codes = FromCodes(jnp.asarray(codebook.codes(own.values)), episodes_of(own, max(HORIZONS)))
        policy = OneStepLookahead(process, jnp.asarray(1.0))
        return play(task, process.reading_from(codes), policy, EPISODES, 2 * seed + number, own)[1]

    best, trained_on = None, None
    for limit, horizon in product(LIMITS, HORIZONS):
        seen = traces(attackers, limit, horizon, 0)
        # Each third of the attackers' people is judged by attackers who learned from the others: none is measured.
        thirds = [np.isin(seen.person, np.unique(seen.person)[third::3]) for third in range(3)]
        useful, secret = np.mean([_attacked(seen.take(~own), seen.take(own)) for own in thirds], axis=0)
        worth = (useful >= LEAST_USEFUL, useful - secret)
        if best is None or worth > best[0]:
            best, trained_on = (worth, (limit, horizon)), seen
    assert best is not None
    assert trained_on is not None
    return best[1], _attacked(trained_on, traces(measured, *best[1], 1))


def _attacked(seen: Traces, measured: Traces) -> tuple[float, float]:
    """Balanced accuracy of the best attacker on U and on S."""
    believed = retrained(seen, measured)
    best = [
        max(balanced_accuracy(said.fair_guess(label), getattr(measured, label)) for said in believed.values())
        for label in ("useful", "secret")
    ]
    return best[0], best[1]
