"""A secret that moves: what planning for the long run gains over one-step lookahead, on the slow toy chain."""

import sys

from benchmarks.catalogue import Measured
from benchmarks.moving import DAYS_MEASURED, SPEEDS, toy
from benchmarks.record import interval
from reticent.evaluate.monitoring import monitor
from reticent.policy.ongoing import CheapestStep, LongRunLookahead
from reticent.policy.policy import Policy
from reticent.problem.bound import Confidence
from reticent.problem.monitoring import Monitoring
from reticent.process.ongoing import OngoingProcess
from reticent.solve.long_run import KAPPAS, OMEGAS, Weighted, long_run

# Days over which weights are compared, with another seed than those that are measured.
COMPARED, SEED = 32, 0


def gain() -> Measured:
    rows = []
    for limit in (0.8, 0.9):
        task = Monitoring(toy(*SPEEDS["slow"]), Confidence(limit))
        found = long_run(task, COMPARED, SEED, _tell)
        plain = OngoingProcess(task)
        alone = LongRunLookahead(plain, found.policy.omega, found.policy.kappa)
        rows += [
            _row(limit, "one-step lookahead", plain, CheapestStep(plain)),
            _row(limit, "long run, kernels of one step", plain, alone, found),
            _row(limit, "long run", found.process, found.policy, found),
        ]
    notes = [
        f"The slow chain of the toy (2 secrets, 3 useful values, 3 sensors), C_T 1, lambda 50, {DAYS_MEASURED} days of "
        f"480 steps. Weights of one, or one of omega {OMEGAS} and kappa {KAPPAS} if clearly cheaper over "
        f"{COMPARED} other days.",
        "Highest posteriors of the secret: by the filter, by the smoother at the end of the day, and 60 steps ahead.",
    ]
    return rows, notes


def _tell(done: int, total: int, how: str) -> None:
    print(done, total, how, file=sys.stderr, flush=True)


def _row(limit: float, policy: str, process: OngoingProcess, acts: Policy, weights: Weighted | None = None) -> dict:
    found = monitor(process, acts, DAYS_MEASURED, seed=1)
    return {
        "confidence_limit": limit,
        "policy": policy,
        "omega": weights.omega if weights else None,
        "kappa": weights.kappa if weights else None,
        **interval("cost_per_step", found.cost),
        **interval("accuracy_useful", found.accuracy_useful),
        "releases_per_step": found.releases.value,
        "locked_share": found.locked.value,
        "highest_filter": found.highest_filter,
        "highest_smoother": found.highest_smoother,
        "highest_prediction": found.highest_prediction,
    }
