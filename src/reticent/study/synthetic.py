"""The paper's synthetic study: agent, baselines and no protection under both bounds, and the price of accuracy.

Beside it the guarantee: the same confidence bounds, never crossed.
"""

from dataclasses import dataclass

from reticent.problem.task import Enforcement
from reticent.study.cell import AGENT, NO_PROTECTION, VALUE_ITERATION, VALUE_KERNELS, Cell, with_seeds

CONFIDENCES = (0.6, 0.7, 0.8, 0.9, 0.99)
INFORMATION_BITS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
ERROR_PENALTY = 50.0
# What `solve.baselines.tuned_baseline` can tune.
BASELINES = ("random sensor", "fixed sensor", "one-step lookahead", "information gain", "EJS", "Chernoff")
LOOKAHEAD = "one-step lookahead"
# Policies under the guarantee: those that need no training, and all.
QUICK_GUARANTEES: tuple[tuple[Enforcement, str], ...] = (("withhold", LOOKAHEAD), ("coarsen", LOOKAHEAD))
GUARANTEES: tuple[tuple[Enforcement, str], ...] = (
    *QUICK_GUARANTEES,
    ("withhold", VALUE_ITERATION),
    ("coarsen", VALUE_ITERATION),
    ("coarsen", VALUE_KERNELS),
)
# Rounds of value iteration: the dearer a round, the fewer.
ROUNDS: dict[tuple[Enforcement, str], int] = {
    ("penalty", VALUE_ITERATION): 300,
    ("withhold", VALUE_ITERATION): 200,
    ("coarsen", VALUE_ITERATION): 250,
    ("coarsen", VALUE_KERNELS): 160,
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
    guarantees: tuple[tuple[Enforcement, str], ...]


def plan(setting: Setting) -> list[Cell]:
    """All cells of the study, the two bounds interleaved so that every part of the picture fills early."""

    def cell(policy: str, kind, limit: float, enforce: Enforcement, penalty: float = ERROR_PENALTY) -> Cell:
        effort = setting.steps if policy == AGENT else ROUNDS.get((enforce, policy), 0)
        # Decisions with value kernels take several times as long.
        episodes = max(2, setting.episodes // 4) if policy == VALUE_KERNELS else setting.episodes
        return Cell(policy, kind, limit, enforce, penalty, 0, effort, episodes)

    paper: dict[str, Enforcement] = {"confidence": "penalty", "information": "mask"}
    bounds = [("confidence", limit) for limit in CONFIDENCES] + [("information", limit) for limit in INFORMATION_BITS]
    cells = [cell(NO_PROTECTION, "none", 2.0, "penalty")]
    for kind, limit in sorted(bounds, key=lambda bound: bound[1], reverse=True):
        enforce = paper[kind]
        cells += with_seeds(cell(AGENT, kind, limit, enforce), setting.seeds)
        cells += [cell(baseline, kind, limit, enforce) for baseline in setting.baselines]
        if kind == "confidence":
            cells += [cell(policy, kind, limit, never) for never, policy in setting.guarantees]
    for penalty in TRADE_OFF_PENALTIES:
        if penalty != ERROR_PENALTY:
            cells += with_seeds(cell(AGENT, "information", TRADE_OFF_BITS, "mask", penalty), setting.seeds)
    return cells
