"""The paper's synthetic study: agent, baselines and no protection under both bounds, and the price of accuracy."""

from dataclasses import dataclass

from reticent.study.cell import AGENT, NO_PROTECTION, Cell, with_seeds

CONFIDENCES = (0.6, 0.7, 0.8, 0.9, 0.99)
INFORMATION_BITS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
ERROR_PENALTY = 50.0
# What `solve.baselines.tuned_baseline` can tune.
BASELINES = ("random sensor", "fixed sensor", "one-step lookahead", "information gain", "EJS", "Chernoff")
# The panel of speed against accuracy: this bound, these penalties.
TRADE_OFF_BITS, TRADE_OFF_PENALTIES = 1.0, (5.0, 10.0, 20.0, 50.0, 100.0, 200.0)


@dataclass(frozen=True)
class Setting:
    """How thorough the study is."""

    seeds: int
    steps: int
    episodes: int
    baselines: tuple[str, ...]


def plan(setting: Setting) -> list[Cell]:
    """All cells of the study, the two bounds interleaved so that every part of the picture fills early."""

    def cell(policy: str, kind, limit: float, penalty: float = ERROR_PENALTY, seed: int = 0) -> Cell:
        return Cell(policy, kind, limit, penalty, seed, setting.steps if policy == AGENT else 0, setting.episodes)

    bounds = [("confidence", limit) for limit in CONFIDENCES] + [("information", limit) for limit in INFORMATION_BITS]
    cells = with_seeds(cell(NO_PROTECTION, "none", 2.0), 1)
    for kind, limit in sorted(bounds, key=lambda bound: bound[1], reverse=True):
        cells += with_seeds(cell(AGENT, kind, limit), setting.seeds)
        cells += [cell(baseline, kind, limit) for baseline in setting.baselines]
    for penalty in TRADE_OFF_PENALTIES:
        if penalty != ERROR_PENALTY:
            cells += with_seeds(cell(AGENT, "information", TRADE_OFF_BITS, penalty), setting.seeds)
    return cells
