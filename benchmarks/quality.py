"""The agent on the synthetic problem (seed 0, lambda 50, C_T 1, C_B 50): cost against one-step lookahead, and speed."""

import sys
import time

import jax.numpy as jnp

from benchmarks.catalogue import Measured
from benchmarks.record import interval
from reticent import Confidence, Information, OneStepLookahead, Process, Task, synthetic
from reticent.evaluate.evaluation import evaluate
from reticent.problem.bound import Bound
from reticent.solve.actor_critic import RECIPES, RecipeName, initialise, policy_of, training

STEPS, EPISODES = 1_000_000, 100_000
CASES: list[tuple[Bound, RecipeName]] = [
    *((Confidence(limit), "ppo") for limit in (0.6, 0.8, 0.9, 0.99)),
    *((Information(bits), "ppo") for bits in (1.0, 1.5)),
    (Confidence(0.99), "a2c"),
]


def quality() -> Measured:
    rows = []
    for bound, recipe_name in CASES:
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
        rows.append(
            {
                "bound": bound.name,
                "limit": bound.number,
                "recipe": recipe_name,
                **interval("agents_cost", agent.cost),
                **interval("lookaheads_cost", lookahead.cost),
                **interval("violation_rate", agent.violation_rate),
                "releases": agent.releases.value,
                "environment_steps": marks[-1][1],
                "environment_steps_per_second": speed,
                "seconds_evaluating_lookahead": time.perf_counter() - started,
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    notes = [
        f"Synthetic problem, training seed 0, evaluated over {EPISODES:,} episodes of seed 1. Costs are estimates. "
        "Steps per second are of training, without compilation; evaluating the one-step lookahead includes it.",
    ]
    return rows, notes
