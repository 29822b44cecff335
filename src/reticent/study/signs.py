"""What the paper's updates do with their signs as printed, on a problem that one release settles.

The paper lets the critic ascend on delta^2, and the actor descend on -ln pi delta, where delta is of costs. In terms of
the corrected losses either is a step the other way: a negative learning rate.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from reticent.belief.information import secret_information_bits
from reticent.evaluate.evaluation import evaluate
from reticent.problem.bound import Confidence
from reticent.problem.enforcement import PaperCost
from reticent.problem.synthetic import synthetic, tells_useful
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.solve.actor_critic import A2C, Recipe, initialise, policy_of, training

Row = dict[str, Any]
# An entropy bonus would change its sign, too, so there is none. Small: one release settles the problem.
RECIPE = replace(A2C, entropy=0.0, environments=32, width=32, actor_rate=3e-3, critic_rate=3e-3)
STEPS, EPISODES, LONGEST = 30_000, 2_000, 20
# Signs of the rates of actor and critic.
SIGNS = {"corrected": (1, 1), "critic as printed": (1, -1), "actor as printed": (-1, 1), "both as printed": (-1, -1)}


def printed_signs(steps: int = STEPS, seed: int = 0) -> list[Row]:
    """The same training under each combination of signs: its cost, and the loss of its critic."""
    process = Process.of(Task(tells_useful(), Confidence(0.9), enforcement=PaperCost(), horizon=LONGEST))
    return [_trained(process, name, steps, seed) for name in SIGNS]


def _trained(process: Process, name: str, steps: int, seed: int) -> Row:
    actor, critic = SIGNS[name]
    recipe: Recipe = replace(RECIPE, actor_rate=actor * RECIPE.actor_rate, critic_rate=critic * RECIPE.critic_rate)
    losses, state = [], initialise(process, recipe, seed)
    for reached, progress in training(process, recipe, state, steps):
        state = reached
        losses.append(float(progress.critic_loss))
    found = evaluate(process, policy_of(process, recipe, state), EPISODES, seed + 1)
    numbers = {"cost": found.cost.value, "releases": found.releases.value}
    return {"updates": name, **numbers, "critic_loss_at_first": losses[0], "critic_loss": losses[-1], "losses": losses}


def printed_information_bits() -> list[float]:
    """Theorem 3 with its minus sign: what the first release of each sensor of the synthetic problem would add."""
    model = synthetic()
    return (-np.asarray(secret_information_bits(model.prior, model.channel))).tolist()
