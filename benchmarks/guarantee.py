"""The guarantee on the synthetic problem: cost at each bound, and how near the agent comes to value iteration.

Finished rows are kept in benchmarks/results/guarantee and not run again; delete the folder to start anew.
"""

from pathlib import Path

import polars as pl

from benchmarks.record import RESULTS, save
from reticent.study.cell import AGENT, NO_LIMIT, VALUE_ITERATION, VALUE_KERNELS, Cell, agent_steps
from reticent.study.run import run_study
from reticent.study.synthetic import CONFIDENCES, LOOKAHEAD, ROUNDS

STEPS, EPISODES = 1_000_000, 100_000
# Cost asked for, at most, by enforcement and policy, for each of the five bounds.
ASKED: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("penalty", VALUE_ITERATION): (None, None, 30.85, None, 16.06),
    ("withhold", VALUE_ITERATION): (26.8, 25.4, 22.8, 19.8, 14.1),
    ("coarsen", LOOKAHEAD): (23.4, 22.0, 20.0, 17.4, 13.6),
    ("coarsen", VALUE_ITERATION): (23.1, 21.4, 19.2, 16.4, 12.2),
    ("coarsen", VALUE_KERNELS): (21.8, 19.6, 17.8, 15.2, 12.0),
    ("withhold", AGENT): (None,) * 5,
    ("coarsen", AGENT): (None,) * 5,
}
ASKED_UNBOUNDED = 9.24


def main() -> None:
    cells = [_cell(VALUE_ITERATION, "penalty", None)]
    # The whole table for some bounds first, if time should be short.
    for limit in (0.8, 0.99, 0.6, 0.9, 0.7):
        for enforce, policy in ASKED:
            if policy != AGENT or limit in (0.8, 0.99):
                cells.append(_cell(policy, enforce, limit))
    folder = RESULTS / "guarantee"
    results = run_study(cells, folder, "The guarantee", lambda cell, _: print(cell.policy, cell.title, flush=True))
    show(results)


def show(results: Path) -> None:
    """The table of what is finished."""
    rows = []
    for row in (
        pl.read_parquet(results)
        .sort("enforce", "policy", "limit", descending=[True, False, False])
        .iter_rows(named=True)
    ):
        unbounded = row["kind"] == "none"
        asked = ASKED_UNBOUNDED if unbounded else ASKED[row["enforce"], row["policy"]][CONFIDENCES.index(row["limit"])]
        cells = ["none" if unbounded else f"{row['limit']:g}", row["enforce"], row["policy"]]
        cells += [f"{row['cost']:.2f} [{row['cost_low']:.2f}, {row['cost_high']:.2f}]", f"{asked:g}" if asked else "-"]
        cells += [f"{row['violation_rate']:.2%}", f"{row['releases']:.2f}", f"{row['episodes']:,}"]
        rows.append([*cells, f"{row['make_seconds']:.0f} s", f"{row['evaluate_seconds']:.0f} s"])
    headings = ["L_B", "enforcement", "policy", "cost", "asked: at most", "violations", "releases", "episodes"]
    notes = [
        "Lambda 50, C_T 1, C_B 50, seed 0. Costs are estimates with 95 % intervals, over episodes of a seed of their "
        f"own. Value iteration: {', '.join(f'{n} rounds ({e}, {p})' for (e, p), n in ROUNDS.items())}; the agent: "
        f"{agent_steps(STEPS):,} environment steps. The one-step lookahead has its stopping threshold tuned.",
        "Seconds are of one core, with compilation; other work ran beside it.",
    ]
    save("guarantee", "The guarantee", [*headings, "making it", "evaluating it"], rows, notes)


def _cell(policy: str, enforce: str, limit: float | None) -> Cell:
    effort = agent_steps(STEPS) if policy == AGENT else ROUNDS.get((enforce, policy), 0)
    # Decisions with value kernels take several times as long.
    episodes = EPISODES // 4 if policy == VALUE_KERNELS else EPISODES
    kind, limit = ("none", NO_LIMIT) if limit is None else ("confidence", limit)
    return Cell(policy, kind, limit, enforce, 50.0, 0, effort, episodes)


if __name__ == "__main__":
    main()
