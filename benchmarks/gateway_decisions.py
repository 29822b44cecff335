"""What a decision of the gateway costs, in a process of its own that never loads JAX; beside the compiled policy."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.catalogue import Measured
from reticent.guard.program import PLAIN

LIMIT, LIMIT_BITS = 0.8, 1.0
# The quickest of several runs: what the machine does besides is not the gateway's.
RUNS, PLAIN_STEPS = 5, 200


def decisions() -> Measured:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, enforce, file in _policies():
            path = Path(folder) / f"{len(rows)}.safetensors"
            file.save(path)
            steps = 20_000 if enforce == "mask" else 1_000
            runs = [_run(path, steps) for _ in range(RUNS)]
            plain = [_run(path, min(steps, PLAIN_STEPS), plain=True) for _ in range(RUNS)]
            best = min(runs, key=lambda run: run["p50"])
            usual = sorted(run["p50"] for run in runs)[RUNS // 2]
            least, chosen = min(run["p1"] for run in runs), min(run["deciding"] for run in runs)
            rows.append(
                {
                    "policy": name,
                    "enforcement": enforce,
                    "deciding_p50": chosen,
                    "p1": least,
                    "p50": best["p50"],
                    "p99": best["p99"],
                    "p50_of_median_run": usual,
                    "compiled_p50": _compiled(file),
                    "start_seconds": min(run["seconds"] for run in runs),
                    "megabytes": max(run["megabytes"] for run in runs),
                    "plain_p50": min(run["p50"] for run in plain),
                    "plain_start_seconds": min(run["seconds"] for run in plain),
                    "plain_megabytes": max(run["megabytes"] for run in plain),
                }
            )
    notes = [
        "Percentiles in microseconds. Deciding: which sensor may speak, and by which rule. The columns after it are of "
        "a decision and its release: also what is sent, the new belief and information spent, the surprise. "
        f"Synthetic problem (3 sensors, 50 readings), one subject, the quickest of {RUNS} runs. The compiled "
        "policy takes one step at a time, dispatch included. p1 is near what an idle machine does. Start: imports, "
        "numpy included, and loading the policy, but not the interpreter. Megabytes are resident at the end. Plain: "
        "`reticent serve --plain`, without numba."
    ]
    return rows, notes


def _policies() -> list[tuple[str, str, Any]]:
    """Fresh networks of the usual widths: how well they choose does not matter here."""
    import jax

    from reticent.policy.actor import Actor, Features
    from reticent.policy.lookahead import lookahead_policy, value_network
    from reticent.policy.network import Network
    from reticent.policy.saved import policy_file
    from reticent.policy.settings import Inputs
    from reticent.problem.bound import Confidence, Information
    from reticent.problem.enforcement import Coarsen, named_enforcement
    from reticent.problem.synthetic import synthetic
    from reticent.problem.task import Task
    from reticent.process.process import Process

    found = []
    cases: list[tuple[Inputs, str]] = [
        ("described", "mask"),
        ("rich", "mask"),
        ("rich", "withhold"),
        ("rich", "coarsen"),
    ]
    for inputs, enforce in cases:
        bound = Information(LIMIT_BITS) if enforce == "mask" else Confidence(LIMIT)
        task = Task(synthetic(), bound, enforcement=named_enforcement(enforce))
        features = Features(Process.of(task), inputs)
        network = Network(features.size, 4, 128, jax.random.key(0))
        file = policy_file(Actor(network, features, True), task, {})
        found.append((f"actor, {inputs}", enforce, file))
    for kernels in ("label", "value"):
        task = Task(synthetic(), Confidence(LIMIT), enforcement=Coarsen())
        process = Process.of(task)
        policy = lookahead_policy(process, value_network(process, 64, jax.random.key(0)), kernels)
        file = policy_file(policy, task, {})
        found.append((f"lookahead, {kernels} kernels", "coarsen", file))
    return found


def _run(path: Path, steps: int, plain: bool = False) -> dict[str, float]:
    """One run in a process of its own, with one thread: products this small gain nothing from more."""
    words = [sys.executable, "-m", "benchmarks.gateway_decisions", str(path), str(steps)]
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **({PLAIN: "1"} if plain else {})}
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True, env=alone).stdout)


def _compiled(file: Any) -> float:
    """The median microseconds of the same with the compiled policy and process."""
    import equinox as eqx
    import jax
    import numpy as np

    from reticent.policy.saved import policy_of

    process, policy = policy_of(file)
    decide = eqx.filter_jit(lambda key, state: process.step(key, state, policy.act(key, state.public)))
    state, seconds = process.init(jax.random.key(0)), []
    for i in range(220):
        key = jax.random.key(i)
        started = time.perf_counter()
        jax.block_until_ready(decide(key, state))
        seconds.append(time.perf_counter() - started)
    return 1e6 * float(np.median(seconds[20:]))


def play(path: str, steps: int) -> None:
    """Decide and release, and print what it took."""
    started = time.perf_counter()
    import numpy as np

    from reticent.gateway.runtime import Runtime

    runtime = Runtime.load(path)
    loaded = time.perf_counter() - started
    rng, model = np.random.default_rng(0), runtime.task.model
    prior, laws = model.prior.reshape(-1), model.channel.reshape(len(model.sensors), model.prior.size, -1)
    pair, standing = int(rng.choice(prior.size, p=prior)), runtime.first()
    taken, deciding = [], []
    while len(taken) < steps:
        begun = time.perf_counter()
        decision = runtime.decide(standing, rng)
        decided = time.perf_counter() - begun
        if decision.sensor is None:
            pair, standing = int(rng.choice(prior.size, p=prior)), runtime.first()
            continue
        reading = int(rng.choice(len(model.symbols), p=laws[decision.sensor, pair]))
        begun = time.perf_counter()
        _, standing = runtime.release(standing, decision, reading, rng)
        deciding.append(decided)
        taken.append(decided + time.perf_counter() - begun)
    p1, p50, p99 = np.quantile(1e6 * np.array(taken[steps // 20 :]), [0.01, 0.5, 0.99])
    deciding_p50 = 1e6 * float(np.median(deciding[steps // 20 :]))
    resident = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    megabytes = int(resident.split()[1]) / 1000
    found = {"deciding": deciding_p50, "p1": p1, "p50": p50, "p99": p99, "seconds": loaded, "megabytes": megabytes}
    print(json.dumps(found))


if __name__ == "__main__":
    play(sys.argv[1], int(sys.argv[2]))
