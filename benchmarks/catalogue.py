"""Every benchmark by name: its title, the function that measures it, and the code that it measures.

Nothing here imports a benchmark until it is run, so that the page is written without JAX, PyTorch or a broker.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

# What a benchmark hands back: rows of numbers under plain names that end in their unit, and notes on how they came.
Rows = list[dict[str, Any]]
Measured = tuple[Rows, list[str]]

SOLVED = ("problem", "belief", "guard", "process", "policy")
PLAYED = (*SOLVED, "evaluate")
TRAINED = (*SOLVED, "solve/actor_critic.py", "solve/returns.py")
ITERATED = (*PLAYED, "solve/value_iteration.py", "solve/bellman.py")
ONGOING = (*SOLVED, "evaluate/monitoring.py")
LIVED = (*ONGOING, "data", "fit", "audit", "solve/long_run.py")
CERTIFIED = (*ITERATED, "solve/certificate.py", "solve/dual.py", "solve/refine.py")
RECORDED = (*TRAINED, "data", "fit", "audit", "study/recordings.py")
AUDITED = (*PLAYED, "data", "fit", "audit")
SERVED = ("problem", "belief", "guard", "policy", "gateway")


@dataclass(frozen=True)
class Benchmark:
    """One table of the page. `runs` is "module:function"; `measures` are files and folders of `src/reticent`."""

    name: str
    title: str
    runs: str
    measures: tuple[str, ...]

    @property
    def function(self) -> Callable[[], Measured]:
        module, _, function = self.runs.partition(":")
        return getattr(import_module(f"benchmarks.{module}"), function)

    @property
    def paths(self) -> list[str]:
        return [f"src/reticent/{each}" for each in self.measures]


BENCHMARKS = (
    Benchmark("start-up", "Start-up", "start_up:start_up", ("__init__.py", "cli", *TRAINED)),
    Benchmark("lattice", "Exact lattice solver", "lattice:lattice", ("problem", "solve/lattice.py")),
    Benchmark("batching", "Training several bounds", "batching:batching", TRAINED),
    Benchmark("quality", "Agent on the synthetic problem", "quality:quality", (*TRAINED, "evaluate")),
    Benchmark("beside-programs", "Beside 0.4.0: programs of the guard", "beside:programs", SOLVED),
    Benchmark("beside-releases", "Beside 0.4.0: releases under coarsening", "beside:releases", SOLVED),
    Benchmark("beside-gateway", "Beside 0.4.0: decisions of the gateway", "beside:gateway", (*SOLVED, "gateway")),
    Benchmark(
        "beside-commands",
        "Beside 0.4.0: what people wait for",
        "beside:commands",
        (*CERTIFIED, "audit", "solve/answer.py"),
    ),
    Benchmark("decisions", "One decision of the compiled policy", "speed:decisions", SOLVED),
    Benchmark("throughput", "Training throughput by enforcement", "speed:throughput", TRAINED),
    Benchmark("guarantee", "The guarantee", "guarantee:guarantee", (*ITERATED, *TRAINED, "solve/baselines.py")),
    Benchmark("moving-promise", "A secret that moves: the promise", "moving:promise", ONGOING),
    Benchmark("moving-price", "A secret that moves: what the guard costs", "moving:price", (*ONGOING, *TRAINED[5:])),
    Benchmark(
        "moving-long-run",
        "A secret that moves: planning for the long run",
        "long_run:gain",
        (*ONGOING, "guard/long_run.py", "solve/long_run.py"),
    ),
    Benchmark("moving-dsa", "A secret that moves: recordings, switched", "moving_recorded:dsa", LIVED),
    Benchmark("moving-extrasensory", "A secret that moves: everyday life", "moving_recorded:extrasensory", LIVED),
    Benchmark("gateway-day", "A secret that moves: a day of the gateway", "gateway_day:day", SERVED),
    Benchmark("certificate", "Certified gaps", "certificate:large", CERTIFIED),
    Benchmark(
        "certificate-tiny",
        "Certificates held against exact solutions",
        "certificate:tiny",
        (*CERTIFIED, "solve/lattice.py"),
    ),
    Benchmark(
        "answer",
        "Answer instead of readings",
        "answer:answers",
        (*ITERATED, "solve/answer.py", "solve/answer_limits.py", "solve/answer_program.py"),
    ),
    Benchmark("learned", "Learned beliefs beside the truth", "learned:beliefs", ("belief", "data")),
    Benchmark("replay", "Training in the replay process", "learned:replay", (*TRAINED, "data")),
    Benchmark("recordings-dsa", "Recordings: dsa", "recordings:dsa", (*PLAYED, "data", "fit", "audit")),
    Benchmark(
        "recordings-motionsense",
        "Recordings: motionsense",
        "recordings:motionsense",
        (*PLAYED, "data", "fit", "audit"),
    ),
    Benchmark("recordings-study-dsa", "Recordings: the paper's policies on dsa", "recordings:study_dsa", RECORDED),
    Benchmark("paper-synthetic", "The paper to the letter: synthetic", "paper:synthetic", (*TRAINED, "evaluate")),
    Benchmark("paper-dsa", "The paper to the letter: dsa", "paper:dsa", RECORDED),
    Benchmark("paper-motionsense", "The paper to the letter: motionsense", "paper:motionsense", RECORDED),
    Benchmark(
        "paper-z-range", "The paper to the letter: where the symbols lie", "paper:z_range", (*TRAINED, "evaluate")
    ),
    Benchmark(
        "comparators",
        "What else one could do",
        "comparators:synthetic",
        (*ITERATED, "problem/mechanisms.py", "solve/answer.py", "solve/baselines.py", "study/baselines.py"),
    ),
    Benchmark("paper-signs", "The paper's updates with printed signs", "paper:signs", (*TRAINED, "study/signs.py")),
    Benchmark(
        "audit-verdicts", "Audit: verdicts on policies whose leak is known", "audit:verdicts", (*PLAYED, "audit")
    ),
    Benchmark("audit-sessions", "Audit: repeated sessions with the same secret", "audit:sessions", (*PLAYED, "audit")),
    Benchmark("audit-file", "Audit: large files of traces", "audit:file", ("audit", "report", "cli/audit.py")),
    Benchmark("audit-dsa", "Audit: the policies of the study on dsa", "audit_recordings:dsa", RECORDED),
    Benchmark(
        "audit-motionsense",
        "Audit: the policies of the study on motionsense",
        "audit_recordings:motionsense",
        RECORDED,
    ),
    Benchmark("panel-dsa", "Panels of providers: people never learned from", "panels:dsa", AUDITED),
    Benchmark("panel-dsa-learned", "The same with learned codes", "panels:dsa_learned", AUDITED),
    Benchmark("panel-claims", "How often a claim about new people holds", "panels:claims", ("evaluate/claim.py",)),
    Benchmark("panel-decisions", "What panels cost", "panels:decisions", ("problem", "belief", "guard")),
    Benchmark("outsiders", "Training throughput against outside agents", "outsiders:outsiders", (*TRAINED, "gym")),
    Benchmark("race", "Time to quality", "race:race", (*CERTIFIED, *TRAINED, "gym")),
    Benchmark("roofline", "Training against the fastest matrix product", "roofline:roofline", TRAINED),
    Benchmark("scale", "How cost grows with the problem", "scale:scale", TRAINED),
    Benchmark("gateway-decisions", "Decisions of the gateway", "gateway_decisions:decisions", (*SOLVED, "gateway")),
    Benchmark("gateway-load", "Gateway under load", "gateway_load:load", (*SERVED, "cli/serve.py")),
)
BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}
