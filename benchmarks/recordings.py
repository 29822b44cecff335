"""The guarantee on people who were never learned from: still or moving against in an elevator or not (DSA), and the
same table for posture against gender (MotionSense).

Each person's turn comes to be measured. Of the others, some are fitted to, and the attackers are trained on traces of
the rest: they see the policy's own traces, but never the measured people. The bound and the longest episode are chosen
on the attackers' people.
"""

import os
import sys
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.record import save
from reticent import ConfidenceBound, Objective, OneStepLookahead, ReleaseProcess, Task
from reticent.audit.adversaries import Released, attack, balanced_accuracy, reading_features, released, symbol_features
from reticent.data.episodes import episodes_of
from reticent.data.load import Source, load
from reticent.data.portions import portions, rotations
from reticent.data.readings import Readings, readings
from reticent.problem.fit import Codebook, fit_model
from reticent.process.recorded import Recorded
from reticent.process.rollout import simulate_traced

DATA = Path(os.environ.get("RETICENT_DATA") or Path(__file__).parents[2] / "shared" / "data")
OBJECTIVE = Objective(time_cost=1.0, error_penalty=200.0)
LIMITS, HORIZONS = (0.52, 0.55), (3, 5)
EPISODES = 4096
LEAST_USEFUL = 0.9


def main() -> None:
    if not DATA.is_dir():
        print(f"No recordings in {DATA}: RETICENT_DATA says where they are. Nothing is measured.", file=sys.stderr)
        return
    for name in sys.argv[1:] or ("dsa", "motionsense"):
        measure(name)


def measure(name) -> None:
    recorded = readings(load(Source(name, DATA)))
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
        gap = useful - secret
        rows.append([label, *(f"{100 * x.mean():.1f} ± {100 * x.std(ddof=1):.1f}" for x in (useful, secret, gap))])
    times = {choice: chosen.count(choice) for choice in dict.fromkeys(chosen)}
    picked = ", ".join(f"L_B {limit:g} with at most {h} readings ({n} of {turns})" for (limit, h), n in times.items())
    notes = [
        f"Balanced accuracies in percent of the better of two attackers (logistic regression, boosted trees) retrained "
        f"on the policy's own traces, on people nobody learned from: mean and standard deviation over {turns} "
        f"rotations by person. Estimates. One reading is one second. Chosen on other people: {picked}.",
    ]
    if name == "dsa":
        notes.append("Asked of the guarantee: U at least 90, gap at least 33 (38 the aim).")
    else:
        notes.append(
            "Gender hardly leaks to unseen people, and random release already has a wide gap: there is little to gain."
        )
    save(f"recordings-{name}", f"Recordings: {name}", ["policy", "U", "S", "gap"], rows, notes)


def _without_guarantee(recorded: Readings, attackers, measured, seed: int) -> dict[str, tuple[float, float]]:
    """Random sensors and single sensors, raw readings."""
    sensors = len(recorded.sensors)
    plans = {"random sensor, 1 reading": (None, 1), "random sensor, 10 readings": (None, 10)}
    plans |= {f"{name}, 1 reading": (i, 1) for i, name in enumerate(recorded.sensors)}
    results = {}
    for label, (sensor, length) in plans.items():
        sides = []
        for people, number in ((attackers, 0), (measured, 1)):
            own = recorded.of(people)
            traces = _raw(own, sensor, sensors, length, 2 * seed + number)
            sides.append((traces, reading_features(traces, own.values)))
        results[label] = _attacked(*sides[0], *sides[1])
    return results


def _raw(own: Readings, sensor: int | None, sensors: int, length: int, seed: int) -> Released:
    keys = jax.random.split(jax.random.key(seed), EPISODES)
    rng = np.random.default_rng(seed)
    useful_values = len(own.useful_values)
    seen = np.unique(own.secret * useful_values + own.useful)
    pair = rng.choice(seen, EPISODES)
    row = np.asarray(jax.vmap(episodes_of(own, length).begin)(keys, jnp.asarray(pair)))
    chosen = rng.integers(sensors, size=(EPISODES, length)) if sensor is None else np.full((EPISODES, length), sensor)
    return Released(chosen, row[:, None] + np.arange(length), pair // useful_values, pair % useful_values)


def _guaranteed(recorded: Readings, fitted, attackers, measured, seed: int):
    """The bound and horizon of the widest gap on the attackers' people, and what they do on the measured."""
    model = fit_model(recorded.of(fitted), seed=seed)
    codebook, symbols = Codebook.of(model), len(model.symbols) + len(model.useful)

    def play(people, limit: float, horizon: int, number: int):
        task = Task(model, ConfidenceBound(limit), OBJECTIVE, "coarsen", horizon)
        process, own = ReleaseProcess(task), recorded.of(people)
        # The same starts whatever the horizon, so that one compiled program serves all.
        codes = Recorded(jnp.asarray(codebook.codes(own.values)), episodes_of(own, max(HORIZONS)))
        policy = OneStepLookahead(process, jnp.asarray(1.0))
        records, sent = simulate_traced(process.replaying(codes), policy.act, EPISODES, 2 * seed + number)
        traces = released(records, sent, process.sensors, horizon)
        return traces, symbol_features(traces, process.sensors, symbols)

    best, trained_on = None, None
    for limit, horizon in product(LIMITS, HORIZONS):
        traces, features = play(attackers, limit, horizon, 0)
        # Half of the attackers' traces judge the other half: none of them is of a measured person.
        half = len(features) // 2
        useful, secret = _attacked(
            _part(traces, slice(half)), features[:half], _part(traces, slice(half, None)), features[half:]
        )
        worth = (useful >= LEAST_USEFUL, useful - secret)
        if best is None or worth > best[0]:
            best, trained_on = (worth, (limit, horizon)), (traces, features)
    assert best is not None
    assert trained_on is not None
    return best[1], _attacked(*trained_on, *play(measured, *best[1], 1))


def _part(traces: Released, rows: slice) -> Released:
    return Released(*(getattr(traces, name)[rows] for name in ("sensor", "symbol", "secret", "useful")))


def _attacked(seen: Released, fitted_on, measured: Released, judged_on) -> tuple[float, float]:
    """Balanced accuracy of the best attacker on U and on S."""
    best = []
    for label in ("useful", "secret"):
        named = attack(fitted_on, getattr(seen, label), judged_on)
        best.append(max(balanced_accuracy(guess, getattr(measured, label)) for guess in named.values()))
    return best[0], best[1]


if __name__ == "__main__":
    main()
