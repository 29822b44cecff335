"""Answer instead of readings on the synthetic problem: cost, and the largest confidence that the provider comes to."""

import time

from benchmarks.record import save
from reticent import Confidence, Process, Task, synthetic, value_iteration
from reticent.evaluate.evaluation import summarise
from reticent.policy.answer import private_task
from reticent.problem.enforcement import AnswerOnly
from reticent.solve.answer import EPISODES, MISTAKE, answer

LIMITS, FLOOR = (0.6, 0.8, 0.9, 0.99), 9.2
ASKED = {0.6: "12", 0.9: "12"}
EVALUATED, EVALUATION_SEED = 100_000, 20_000


def main() -> None:
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
        cells = [
            f"{limit:g}",
            f"{found.cost.value:.2f} [{found.cost.low:.2f}, {found.cost.high:.2f}]",
            ASKED.get(limit, "-"),
        ]
        cells += [f"{made.rule.highest_confidence:.4f}", f"{made.rule.highest_limit:.4f}"]
        cells += [f"{found.releases.value:.2f}", f"{found.accuracy_useful.value:.2%}", f"{found.spent_bits.value:.3f}"]
        rows.append([*cells, f"{seconds:.0f} s"])
    headings = ["L_B", "cost", "asked: at most", "largest P(s), estimate", "its upper limit", "time of the answer"]
    notes = [
        f"Lambda 50, C_T 1, seed 0. Without any bound the optimal cost is about {FLOOR:g}. Costs are estimates with "
        f"95 % intervals from {EVALUATED:,} episodes. The upper limit is over all times and answers, silence included, "
        f"from {EPISODES:,} episodes: all of them hold at once but for a chance of {MISTAKE:g}.",
        f"Training the private policy took {trained:.0f} s, once for all of them.",
    ]
    save("answer", "Answer instead of readings", [*headings, "U right", "bits about S", "making the rule"], rows, notes)


if __name__ == "__main__":
    main()
