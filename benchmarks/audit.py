"""The audit on policies whose leak is known, on the paper's policies over recordings, repeated sessions, and files of
millions of rows.

Arguments choose parts: verdicts, sessions, file, dsa, motionsense.
"""

import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import polars as pl

from benchmarks.record import save
from benchmarks.recordings import DATA
from reticent import Confidence, Information, OneStepLookahead, Process, Task, synthetic
from reticent.audit.audit import Context, audit_traces
from reticent.audit.findings import NOTHING_LEARNED, WORDS, percent
from reticent.audit.play import play, play_readings
from reticent.audit.sessions import repeated_sessions
from reticent.audit.traces import Names, Traces
from reticent.data.episodes import episodes_of
from reticent.data.load import Source, load
from reticent.data.readings import Readings, readings, uniform_prior
from reticent.policy.policy import NoProtection, Policy, RandomSensor
from reticent.problem.bound import Bound, Unbounded
from reticent.problem.enforcement import Coarsen, named_enforcement
from reticent.problem.fit import Codebook, fit_model
from reticent.process.source import FromCodes
from reticent.study.recordings import QUICK, learn_provider, replayed, standardised, trained_agent

EPISODES, PLANTED_READINGS = 20_000, 3
RECORDED_EPISODES = 4_096
SESSIONS, PEOPLE = (1, 2, 5, 10), 4_096
ROWS_PER_EPISODE, MILLIONS = 10, (1, 5)


def main() -> None:
    parts = {"verdicts": verdicts, "sessions": sessions, "file": file}
    if DATA.is_dir():
        parts |= {name: partial(recordings, name) for name in ("dsa", "motionsense")}
    for part in sys.argv[1:] or parts:
        parts[part]()


def verdicts() -> None:
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


def recordings(name) -> None:
    """The policies of `reproduce`, attacked on people whom neither belief, model nor policy has met."""
    recorded = readings(load(Source(name, DATA)))
    learned_from, held_out, audited = _people(recorded)
    scaled = standardised(recorded, learned_from)
    subject = scaled.of(audited)
    provider = learn_provider(scaled.of(learned_from), scaled.of(held_out), QUICK, 0)

    def traces(bound: Bound, policy: Policy, seed: int = 0) -> Traces:
        return play_readings(replayed(provider, subject, bound, QUICK), policy, RECORDED_EPISODES, seed, subject)[1]

    random = traces(Unbounded(), NoProtection(), 1)
    rows = [_audited("no protection", "-", traces(Unbounded(), NoProtection()), random)]
    for title, limit, bound in (
        ("belief-PDRP", "0.65", Confidence(0.65)),
        ("belief-PDRP", "0.95", Confidence(0.95)),
        ("MI-PDRP", "0.5 bits", Information(0.5)),
    ):
        agent = trained_agent(provider, scaled.of(held_out), bound, QUICK, 0)
        rows.append(_audited(title, limit, traces(bound, agent), random))
    fitted_to = recorded.of(learned_from + held_out)
    model = fit_model(fitted_to, prior=uniform_prior(fitted_to))
    own = recorded.of(audited)
    codes = FromCodes(jnp.asarray(Codebook.of(model).codes(own.values)), episodes_of(own, QUICK.readings))
    for limit in QUICK.guarantee:
        task = Task(model, Confidence(limit), QUICK.objective, Coarsen(), QUICK.readings)
        process = Process.of(task)
        policy = OneStepLookahead(process, jnp.asarray(1.0))
        _, released = play(task, process.reading_from(codes), policy, RECORDED_EPISODES, 0, own)
        rows.append(_audited("guarantee (coarsen)", f"{limit:g}", released, None))
    notes = [
        f"{len(learned_from + held_out)} people to learn belief, model and policies from (the quick setting of "
        f"`reticent reproduce`), {len(audited)} others to audit, {RECORDED_EPISODES:,} episodes. Each is judged by "
        "attackers who learned from the others: naive Bayes, logistic regression, n-grams, boosted trees and an LSTM "
        "on the policy's own traces and, but for the guarantee, whose symbols never came in them, on random ones. "
        "Balanced accuracies in percent of the strongest; 95 % intervals (bootstrap over people). "
        "Estimates.",
    ]
    headings = [
        "policy",
        "bound",
        "readings",
        "strongest on S",
        "S",
        "U",
        "bits about S (lower bound)",
        "sensors alone",
    ]
    save(f"audit-{name}", f"Audit: the policies of the study on {name}", headings, rows, notes)


def _people(recorded: Readings) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Half of the people to learn from, a part of them to stop learning on and to train policies with; and the rest.
    Whoever has one secret for good is dealt out by it."""
    of_each = [(recorded.secret[recorded.person == person].min(), person) for person in range(len(recorded.people))]
    dealt = [person for _, person in sorted(of_each)]
    known, audited = dealt[::2], dealt[1::2]
    return tuple(known[::2]), tuple(known[1::2]), tuple(audited)


def _audited(title: str, bound: str, traces: Traces, random: Traces | None) -> list[str]:
    print(title, bound, file=sys.stderr, flush=True)
    found = audit_traces(traces, context=Context(random))
    best = found.strongest
    useful = max((attack.useful.balanced for attack in found.attacks), key=lambda estimate: estimate.value)
    sensors = next(each for each in found.observers if each.observer == "sensor choices only")
    bits = max((attack.secret.bits for attack in found.attacks), key=lambda estimate: estimate.value)
    return [
        title,
        bound,
        f"{traces.length.mean():.1f}",
        f"{best.attacker}, {WORDS[best.fitted_on]}",
        percent(best.secret.balanced),
        percent(useful),
        f"{bits.value:.2f} [{bits.low:.2f}, {bits.high:.2f}]",
        percent(sensors.secret.balanced),
    ]


def sessions() -> None:
    """The same secret, session after session, at L_B .9."""
    rows = []
    for enforce in ("penalty", "coarsen"):
        process = Process.of(Task(synthetic(), Confidence(0.9), enforcement=named_enforcement(enforce)))
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
