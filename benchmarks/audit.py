"""The audit on policies whose leak is known, repeated sessions, and a file of a million rows.

Arguments choose parts: verdicts, sessions, file.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import polars as pl

from benchmarks.record import save
from reticent import ConfidenceBound, OneStepLookahead, ReleaseProcess, Task, synthetic
from reticent.audit.audit import audit_traces
from reticent.audit.findings import NOTHING_LEARNED, percent
from reticent.audit.play import play
from reticent.audit.sessions import repeated_sessions
from reticent.audit.traces import Names, Traces
from reticent.policy.policy import NoProtection, RandomSensor
from reticent.problem.bound import NO_BOUND

EPISODES, PLANTED_READINGS = 20_000, 3
SESSIONS, PEOPLE = (1, 2, 5, 10), 4_096
ROWS_PER_EPISODE, MILLIONS = 10, (1, 5)


def main() -> None:
    chosen = sys.argv[1:] or ("verdicts", "sessions", "file")
    for part, run in (("verdicts", verdicts), ("sessions", sessions), ("file", file)):
        if part in chosen:
            run()


def verdicts() -> None:
    """An open policy, a silent one, the guarantee, and one whose sensor is chosen by the secret."""
    free = Task(synthetic(), NO_BOUND, horizon=10)
    kept = Task(synthetic(), ConfidenceBound(0.9), enforce="coarsen")
    open_process, kept_process = ReleaseProcess(free), ReleaseProcess(kept)
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
        row = [name, percent(exact.secret.accuracy), percent(exact.secret.confidence)]
        row += [f"{best.attacker} {percent(best.secret.accuracy)}", "as it must be" if found.passed else "caught"]
        rows.append([*row, f"{seconds:.0f}"])
        print(*found.verdict, sep="\n", file=sys.stderr)
    notes = [
        f"Synthetic problem seed 0, {EPISODES:,} episodes, half to learn from, half to judge. Exact Bayes is honest if "
        "it is right as often as it believes. Nobody who learns may beat it clearly (four standard errors): who "
        "does has found something that the model does not explain. Estimates with 95 % intervals (bootstrap "
        "over episodes).",
    ]
    headings = ["policy", "Bayes right about S", "Bayes believes", "best learned attacker", "checks", "seconds"]
    save("audit-verdicts", "Audit: verdicts on policies whose leak is known", headings, rows, notes)


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


def sessions() -> None:
    """The same secret, session after session, at L_B .9."""
    rows = []
    for enforce in ("penalty", "coarsen"):
        process = ReleaseProcess(Task(synthetic(), ConfidenceBound(0.9), enforce=enforce))
        policy = OneStepLookahead(process, jnp.asarray(1.0))
        for carried in (False, True):
            found = repeated_sessions(process, policy, carried, max(SESSIONS), PEOPLE, 0)
            shown = [found[number - 1] for number in SESSIONS]
            row = [enforce, "carried over" if carried else "forgotten"]
            row += [f"{100 * each.confidence.value:.1f}" for each in shown]
            over = [each.violation_rate for each in shown]
            rows.append([*row, *("-" if each is None else f"{100 * each.value:.1f}" for each in (over[0], over[-1]))])
    notes = [
        f"Synthetic problem seed 0, one-step lookahead, {PEOPLE:,} people, U drawn anew in each session. Mean "
        "confidence in the secret, in percent, of exact Bayes over all sessions so far, and people for whom it "
        "has reached .9 at any moment. Estimates; 95 % of the means lie within .6.",
    ]
    headings = [
        "kept by",
        "belief between sessions",
        *(f"after {n}" for n in SESSIONS),
        "over after 1",
        "over after 10",
    ]
    save("audit-sessions", "Audit: repeated sessions with the same secret, L_B .9", headings, rows, notes)


def file() -> None:
    """`reticent audit --traces` on large files of another system: no model, symbols only."""
    task = Task(synthetic(), NO_BOUND, horizon=ROWS_PER_EPISODE)
    count = 10**6 // ROWS_PER_EPISODE
    _, traces = play(task, ReleaseProcess(task), NoProtection(), count, 0)
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
            rows.append(
                [f"{millions},000,000", f"{path.stat().st_size / 1e6:.0f} MB", f"{seconds:.0f}", f"{peak:,.0f} MB"]
            )
    notes = [
        "All attackers, observers, learning curves and the page. 40,000 episodes of the file, drawn at random, are "
        "attacked; the rest is only streamed through. Peak is the largest resident memory of any audit so far.",
    ]
    headings = ["rows", "file", "seconds", "peak memory"]
    save("audit-file", "Audit: large files of traces", headings, rows, notes)


if __name__ == "__main__":
    main()
