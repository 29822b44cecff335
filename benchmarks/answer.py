"""Answer instead of readings on the synthetic problem: cost, and the largest confidence that the provider comes to."""

import time

from benchmarks.catalogue import Measured
from benchmarks.record import interval
from reticent import Confidence, Process, Task, synthetic
from reticent.evaluate.evaluation import summarise
from reticent.policy.answer import private_task
from reticent.problem.enforcement import AnswerOnly
from reticent.solve.answer import EPISODES, MISTAKE, answer
from reticent.solve.value_iteration import value_iteration

LIMITS = (0.6, 0.8, 0.9, 0.99)
EVALUATED, EVALUATION_SEED = 100_000, 20_000


def answers() -> Measured:
    tasks = [Task(synthetic(), Confidence(limit), enforcement=AnswerOnly()) for limit in LIMITS]
    started = time.perf_counter()
    private = value_iteration(Process.of(private_task(tasks[0])))
    trained = time.perf_counter() - started
    rows = []
    for limit, task in zip(LIMITS, tasks, strict=True):
        started = time.perf_counter()
        made = answer(task, private)
        seconds = time.perf_counter() - started
        found = summarise(made.simulate(EVALUATED, EVALUATION_SEED), EVALUATION_SEED)
        rows.append(
            {
                "confidence_limit": limit,
                **interval("cost", found.cost),
                "highest_confidence": made.rule.highest_confidence,
                "highest_confidence_upper_limit": made.rule.highest_limit,
                "time_of_answer": found.releases.value,
                "accuracy_useful": found.accuracy_useful.value,
                "spent_bits": found.spent_bits.value,
                "seconds": seconds,
            }
        )
    notes = [
        f"Lambda 50, C_T 1, seed 0. Costs are estimates from {EVALUATED:,} episodes. The upper limit is over all times "
        f"and answers, silence included, from {EPISODES:,} episodes: all of them hold at once but for a chance of "
        f"{MISTAKE:g}. Seconds are of making the rule.",
        f"Training the private policy took {trained:.0f} s, once for all of them.",
    ]
    return rows, notes
