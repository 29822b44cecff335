"""A day of the gateway: people whose secret moves, a reading of each sensor every minute, as fast as it goes."""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.catalogue import Measured
from benchmarks.moving import SPEEDS, toy
from reticent.gateway.export import write_export
from reticent.gateway.loading import load_runtime
from reticent.gateway.moving_runtime import MovingRuntime
from reticent.gateway.moving_service import MovingGateway
from reticent.gateway.opening import open_ledger
from reticent.gateway.settings import Settings
from reticent.gateway.simulate import Lived
from reticent.gateway.verify import verify
from reticent.problem.bound import Confidence
from reticent.problem.model import Model
from reticent.problem.monitoring import Monitoring
from reticent.solution.ongoing import OngoingSolution
from reticent.solve.long_run import weighted

# So many people, for so many steps: what a few minutes of a processor allow.
PEOPLE, STEPS, LIMIT, MINUTE = 30, 1_440, 0.8, 60.0
START, LOOKS, AHEAD = 1_700_000_040.0, 4, 30


def day() -> Measured:
    model = toy(*SPEEDS["medium"])
    found = weighted(Monitoring(model, Confidence(LIMIT), horizon=STEPS), 1.0, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "day.safetensors"
        OngoingSolution(found.task, found.process, found.policy).save(policy)
        runtime = load_runtime(policy, MINUTE)
        assert isinstance(runtime, MovingRuntime)
        with open_ledger(str(Path(folder) / "day.db")) as ledger:
            row = _lived(MovingGateway(runtime, ledger, Settings(policy), _clock), model)
            started = time.process_time()
            verdict = verify(ledger, runtime)
            row |= {
                "verified": verdict.fault is None,
                "verified_entries_per_cpu_second": verdict.entries / (time.process_time() - started),
            }
            write_export(ledger, Path(folder) / "day.parquet")
        row |= _known(model, pl.read_parquet(Path(folder) / "day.parquet"))
    notes = [
        f"{PEOPLE} simulated people, scaled down from a thousand, for {STEPS} minutes, a whole day, every sensor of "
        f"each once a minute, on a clock that jumps. Toy chain, medium speed, L {LIMIT}, lookahead for the long run. "
        "One decision is a step of one person.",
        "Memory: resident, of the whole process with what simulates the people, after a quarter of the steps and at "
        "their end.",
        "Highest posterior: by code of this benchmark from the export alone, of every moment as it passes, of all "
        f"moments before at {LOOKS} times of the day, and {AHEAD} steps ahead.",
    ]
    return [row], notes


_now = START


def _clock() -> float:
    return _now


def _lived(gateway: MovingGateway, model: Model) -> dict[str, object]:
    global _now
    source, seconds, held = Lived(model, [f"person {n}" for n in range(PEOPLE)], seed=0), 0.0, []
    right = []
    for step in range(STEPS):
        pair = source.pair
        messages = list(source.moment())
        started = time.process_time()
        gateway.delivered(gateway.handle(messages))
        seconds += time.process_time() - started
        guesses = [gateway.look(f"person {n}")["useful"] for n in range(PEOPLE)]  # type: ignore[index]
        right.append((np.argmax(guesses, 1) == pair % len(model.useful)).mean())
        _now += MINUTE
        if step + 1 in (STEPS // 4, STEPS):
            held.append(_resident_mib())
            print(step, held, seconds, file=sys.stderr, flush=True)
    return {
        "people": PEOPLE,
        "steps": STEPS,
        "confidence_limit": LIMIT,
        "decisions_per_cpu_second": PEOPLE * STEPS / seconds,
        "releases_per_step": gateway.counters["released"] / PEOPLE / STEPS,
        "accuracy_useful": float(np.mean(right)),
        "memory_mib_early": held[0],
        "memory_mib_end": held[1],
    }


def _resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def _known(model: Model, export: pl.DataFrame) -> dict[str, object]:
    """What the export tells whom who knows the model: by matrix products from scratch."""
    pairs = model.prior.size
    moves = model.dynamics.reshape(pairs, pairs)
    told = np.ones((PEOPLE, STEPS, pairs))
    names = {name: n for n, name in enumerate(export["subject"].unique().sort())}
    for subject, step, sensor, chances in export.select("subject", "step", "sensor", "chances").iter_rows():
        channel = model.channel[model.sensors.index(sensor)].reshape(pairs, -1)
        told[names[subject], step] = channel @ np.array(json.loads(chances))
    forward = np.empty_like(told)
    belief = np.broadcast_to(model.prior.reshape(-1), (PEOPLE, pairs))
    for t in range(STEPS):
        belief = belief * told[:, t]
        forward[:, t] = belief = belief / belief.sum(1, keepdims=True)
        belief = belief @ moves
    highest = _of_secret(model, forward).max()
    for end in np.linspace(0, STEPS - 1, LOOKS + 1).astype(int)[1:]:
        backward, later = np.ones((PEOPLE, pairs)), forward[:, end]
        for j in range(end - 1, -1, -1):
            backward = (told[:, j + 1] * backward) @ moves.T
            backward = backward / backward.max(1, keepdims=True)
            highest = max(highest, _of_secret(model, forward[:, j] * backward).max())
        for _ in range(AHEAD):
            later = later @ moves
            highest = max(highest, _of_secret(model, later).max())
    return {"highest_posterior": float(highest), "below_the_bound": bool(highest < LIMIT)}


def _of_secret(model: Model, weights: np.ndarray) -> np.ndarray:
    by_secret = weights.reshape(*weights.shape[:-1], *model.prior.shape).sum(-1)
    return by_secret.max(-1) / by_secret.sum(-1)
