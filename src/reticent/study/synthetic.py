"""The paper's synthetic study: agent, baselines and no protection under both bounds, and the price of accuracy.

Beside it what goes beyond the paper: the guarantee, answers in place of readings, value iteration, the certified floor
under all policies, and information limited on average.
"""

from dataclasses import dataclass

from reticent.study.cell import (
    AGENT,
    FLOOR,
    NO_LIMIT,
    NO_PROTECTION,
    VALUE_ITERATION,
    VALUE_KERNELS,
    Cell,
    Kind,
    agent_steps,
    with_seeds,
)

CONFIDENCES = (0.6, 0.7, 0.8, 0.9, 0.99)
INFORMATION_BITS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
ERROR_PENALTY = 50.0
# What `solve.baselines.tuned_baseline` can tune.
LOOKAHEAD = "one-step lookahead"
# Beyond the paper: what needs no training, and all.
QUICK_EXTRAS: tuple[tuple[Kind, str, str], ...] = (
    ("confidence", "withhold", LOOKAHEAD),
    ("confidence", "coarsen", LOOKAHEAD),
)
EXTRAS: tuple[tuple[Kind, str, str], ...] = (
    *QUICK_EXTRAS,
    ("confidence", "withhold", VALUE_ITERATION),
    ("confidence", "coarsen", VALUE_ITERATION),
    ("confidence", "coarsen", VALUE_KERNELS),
    ("confidence", "answer", VALUE_ITERATION),
    ("confidence", "penalty", VALUE_ITERATION),
    ("confidence", "penalty", FLOOR),
    ("information", "mask", VALUE_ITERATION),
    ("expected", "lagrangian", VALUE_ITERATION),
)
LIMITS: dict[Kind, tuple[float, ...]] = {
    "confidence": CONFIDENCES,
    "information": INFORMATION_BITS,
    "expected": INFORMATION_BITS,
}
# Rounds of value iteration: the dearer a round, the fewer.
ROUNDS: dict[tuple[str, str], int] = {
    ("penalty", VALUE_ITERATION): 300,
    ("penalty", FLOOR): 80,
    ("mask", VALUE_ITERATION): 200,
    ("lagrangian", VALUE_ITERATION): 300,
    ("withhold", VALUE_ITERATION): 200,
    ("coarsen", VALUE_ITERATION): 250,
    ("coarsen", VALUE_KERNELS): 160,
    ("answer", VALUE_ITERATION): 300,
}
# The panel of speed against accuracy: this bound, these penalties.
TRADE_OFF_BITS, TRADE_OFF_PENALTIES = 1.0, (5.0, 10.0, 20.0, 50.0, 100.0, 200.0)


@dataclass(frozen=True)
class Setting:
    """How thorough the study is."""

    seeds: int
    steps: int
    episodes: int
    baselines: tuple[str, ...]
    extras: tuple[tuple[Kind, str, str], ...]


def plan(setting: Setting) -> list[Cell]:
    """All cells of the study, the two bounds interleaved so that every part of the picture fills early."""

    steps = agent_steps(setting.steps)

    def cell(policy: str, kind, limit: float, enforce: str, penalty: float = ERROR_PENALTY) -> Cell:
        effort = steps if policy == AGENT else ROUNDS.get((enforce, policy), 0)
        # Decisions with value kernels take several times as long, and a clairvoyant plans longer still.
        episodes = max(2, setting.episodes // {VALUE_KERNELS: 4, FLOOR: 400}.get(policy, 1))
        return Cell(policy, kind, limit, enforce, penalty, 0, effort, episodes)

    paper: dict[Kind, str] = {"confidence": "penalty", "information": "mask"}
    bounds: list[tuple[Kind, float]] = [(kind, limit) for kind, limits in LIMITS.items() for limit in limits]
    cells = [cell(NO_PROTECTION, "none", NO_LIMIT, "penalty")]
    for kind, limit in sorted(bounds, key=lambda bound: bound[1], reverse=True):
        if kind in paper:
            cells += with_seeds(cell(AGENT, kind, limit, paper[kind]), setting.seeds)
            cells += [cell(baseline, kind, limit, paper[kind]) for baseline in setting.baselines]
        cells += [cell(policy, kind, limit, enforce) for of, enforce, policy in setting.extras if of == kind]
    for penalty in TRADE_OFF_PENALTIES:
        if penalty != ERROR_PENALTY:
            cells += with_seeds(cell(AGENT, "information", TRADE_OFF_BITS, "mask", penalty), setting.seeds)
    return cells
