"""The agent on the synthetic problem (seed 0, lambda 50, C_T 1, C_B 50): cost against one-step lookahead, and speed."""

import time

import jax.numpy as jnp

from benchmarks.record import save
from reticent import Confidence, Information, OneStepLookahead, Process, Task, evaluate, synthetic
from reticent.solve.a2c import RECIPES, RecipeName, initialise, policy_of, training

STEPS, EPISODES = 1_000_000, 100_000
# What the agent must reach; None where only "stop at once" or nothing is asked.
TARGETS = {
    ("L_B", 0.6): "33.33, stops at once",
    ("L_B", 0.8): "-",
    ("L_B", 0.9): "lookahead - 0.3",
    ("L_B", 0.99): "16.9",
    ("L_MI", 1.0): "18.5",
    ("L_MI", 1.5): "13.1",
}
CASES: list[tuple[str, float, RecipeName]] = [(kind, limit, "default") for kind, limit in TARGETS]
CASES.append(("L_B", 0.99, "paper"))


def main() -> None:
    rows = []
    for kind, limit, recipe_name in CASES:
        bound = Confidence(limit) if kind == "L_B" else Information(limit)
        process, recipe = Process.of(Task(synthetic(), bound)), RECIPES[recipe_name]
        state = initialise(process, recipe, 0)
        marks = []
        for reached, _ in training(process, recipe, state, STEPS):
            state = reached
            marks.append((time.perf_counter(), int(state.update) * recipe.steps_per_update))
        # The first piece compiles; speed is of the rest.
        speed = (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])
        agent = evaluate(process, policy_of(process, recipe, state), EPISODES, seed=1)
        started = time.perf_counter()
        lookahead = evaluate(process, OneStepLookahead(process, jnp.asarray(2.0)), EPISODES, seed=1)
        seconds = time.perf_counter() - started
        target = TARGETS[kind, limit] if recipe_name == "default" else "-"
        cells = [f"{kind} {limit:g}", recipe_name, str(agent.cost), target, str(lookahead.cost)]
        cells += [
            f"{100 * agent.violation_rate.value:.2f} %",
            f"{agent.releases.value:.2f}",
            f"{speed:,.0f}",
            f"{seconds:.1f} s",
        ]
        rows.append(cells)
        print(cells, flush=True)
    headings = ["bound", "recipe", "agent's cost", "asked: at most", "one-step lookahead's cost", "violations"]
    headings += ["releases", "steps/s", "evaluating lookahead"]
    notes = [
        f"Training seed 0, {STEPS:,} environment steps (rounded up to whole updates), evaluated over "
        f"{EPISODES:,} episodes of seed 1. Costs are "
        "estimates with 95 % intervals.",
        "steps/s: environment steps per second of training, without compilation. The last column includes compilation.",
    ]
    save("quality", "Agent on the synthetic problem", headings, rows, notes)


if __name__ == "__main__":
    main()
