"""The audit on policies whose leak is known, repeated sessions, and files of millions of rows."""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import polars as pl

from benchmarks.catalogue import Measured
from benchmarks.record import interval
from reticent import Confidence, OneStepLookahead, Process, Task, synthetic
from reticent.audit.audit import audit_traces
from reticent.audit.findings import NOTHING_LEARNED
from reticent.audit.play import play
from reticent.audit.sessions import repeated_sessions
from reticent.audit.traces import Names, Traces
from reticent.policy.policy import NoProtection, RandomSensor
from reticent.problem.bound import Unbounded
from reticent.problem.enforcement import Coarsen, named_enforcement

EPISODES, PLANTED_READINGS = 20_000, 3
LIMIT, SESSIONS, PEOPLE = 0.9, 10, 4_096
ROWS_PER_EPISODE, MILLIONS = 10, (1, 5)


def verdicts() -> Measured:
    """An open policy, a silent one, the guarantee, and one whose sensor is chosen by the secret."""
    free = Task(synthetic(), Unbounded(), horizon=10)
    kept = Task(synthetic(), Confidence(0.9), enforcement=Coarsen())
    open_process, kept_process = Process.of(free), Process.of(kept)
    subjects = {
        "open: ten random readings": (free, play(free, open_process, NoProtection(), EPISODES, 0)[1]),
        "silent": (free, play(free, open_process, RandomSensor(jnp.asarray(0.0)), EPISODES, 0)[1]),
        "guarantee (coarsen), L_B .9": (
            kept,
            play(kept, kept_process, OneStepLookahead(kept_process, jnp.asarray(1.0)), EPISODES, 0)[1],
        ),
        "planted: the secret chooses the sensor": (free, _planted()),
    }
    rows = []
    for name, (task, traces) in subjects.items():
        started = time.perf_counter()
        found = audit_traces(traces, task)
        seconds = time.perf_counter() - started
        exact = next(attack for attack in found.attacks if attack.fitted_on == NOTHING_LEARNED)
        learned = [attack for attack in found.attacks if attack.fitted_on != NOTHING_LEARNED]
        best = max(learned, key=lambda attack: attack.secret.accuracy.value)
        row = {"policy": name, **interval("bayes_accuracy", exact.secret.accuracy)}
        row |= {**interval("bayes_confidence", exact.secret.confidence), "best_learned_attacker": best.attacker}
        row |= interval("best_learned_accuracy", best.secret.accuracy)
        rows.append({**row, "checks_passed": found.passed, "seconds": seconds})
        print(*found.verdict, sep="\n", file=sys.stderr)
    notes = [
        f"Synthetic problem seed 0, {EPISODES:,} episodes, half to learn from, half to judge, about S. Exact Bayes is "
        "calibrated if it is right as often as it believes. Nobody who learns may beat it clearly (four standard "
        "errors): who does has found something that the model does not explain, and the checks fail. Intervals by "
        "bootstrap over episodes.",
    ]
    return rows, notes


def _planted() -> Traces:
    """Three readings, of the sensor whose number is that of the secret: a side channel that Bayes does not know of."""
    model, rng = synthetic(), np.random.default_rng(0)
    secrets, useful = model.prior.shape
    pair = rng.choice(secrets * useful, EPISODES, p=model.prior.reshape(-1))
    s, u = pair // useful, pair % useful
    cumulative = model.channel[s, s, u].cumsum(-1)[:, None]
    symbol = (rng.random((EPISODES, PLANTED_READINGS, 1)) > cumulative).sum(-1)
    sensor = np.repeat(s[:, None], PLANTED_READINGS, axis=1)
    return Traces(
        sensor=sensor,
        symbol=symbol,
        reading=None,
        stopped=np.ones(EPISODES, bool),
        person=np.arange(EPISODES),
        secret=s,
        useful=u,
        names=Names(model.sensors, model.symbols, model.secrets, model.useful),
        likelihood=model.channel[sensor, :, :, symbol],
    )


def sessions() -> Measured:
    """The same secret, session after session."""
    rows = []
    for enforce in ("penalty", "coarsen"):
        process = Process.of(Task(synthetic(), Confidence(LIMIT), enforcement=named_enforcement(enforce)))
        policy = OneStepLookahead(process, jnp.asarray(1.0))
        for carried in (False, True):
            found = repeated_sessions(process, policy, carried, SESSIONS, PEOPLE, 0)
            for number, each in enumerate(found, 1):
                over = None if each.violation_rate is None else each.violation_rate.value
                row = {"enforcement": enforce, "belief": "carried over" if carried else "forgotten", "sessions": number}
                rows.append({**row, "confidence_secret": each.confidence.value, "violation_rate": over})
    notes = [
        f"Synthetic problem seed 0, L_B {LIMIT:g}, one-step lookahead, {PEOPLE:,} people, U drawn anew in each "
        "session, the belief carried over between sessions or forgotten. Confidence in the secret: mean, of exact "
        "Bayes over all sessions so far; violations: people for whom it has reached the bound at any moment. "
        "Estimates; 95 % of the means lie within 0.006.",
    ]
    return rows, notes


def file() -> Measured:
    """`reticent audit --traces` on large files of another system: no model, symbols only."""
    task = Task(synthetic(), Unbounded(), horizon=ROWS_PER_EPISODE)
    count = 10**6 // ROWS_PER_EPISODE
    _, traces = play(task, Process.of(task), NoProtection(), count, 0)
    assert traces.symbol is not None
    names = traces.names
    table = pl.DataFrame(
        {
            "episode": np.repeat(np.arange(count), ROWS_PER_EPISODE),
            "step": np.tile(np.arange(ROWS_PER_EPISODE), count),
            "sensor": np.array(names.sensors)[traces.sensor].reshape(-1),
            "symbol": np.array(names.symbols)[traces.symbol].reshape(-1),
            "secret": np.repeat(np.array(names.secrets)[traces.secret], ROWS_PER_EPISODE),
            "useful": np.repeat(np.array(names.useful)[traces.useful], ROWS_PER_EPISODE),
        }
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for millions in MILLIONS:
            path = Path(folder) / f"{millions}.parquet"
            copies = [table.with_columns(pl.col("episode") + copy * count) for copy in range(millions)]
            pl.concat(copies).write_parquet(path)
            del copies
            command = [sys.executable, "-m", "reticent", "audit", "--traces", str(path), "--out", f"{folder}/out"]
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - started
            # The largest of all so far: later files are larger, so it is theirs, or they need no more.
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            row = {"rows": millions * 10**6, "file_megabytes": path.stat().st_size / 1e6}
            rows.append({**row, "seconds": seconds, "peak_megabytes": peak})
    notes = [
        "All attackers, observers, learning curves and the page. 20,000 episodes of the file, drawn at random, are "
        "attacked; the rest is only streamed through. Peak is the largest resident memory of any audit so far.",
    ]
    return rows, notes
