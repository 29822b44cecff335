"""Time to quality: seconds of training until a policy's cost is within 5, 2 and 1 % of the certified floor.

The floors take a quarter of an hour and are kept; the argument `floors` computes them alone, and the names of cases run
these alone, beside what is known of the others. The clock stands still
while policies are judged, and runs while they are compiled. All are judged with the value that value iteration ends
with, which takes the luck out of judging.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import altair as alt
import jax
import polars as pl
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.vec_env import VecNormalize

from benchmarks.record import FOLDER, RESULTS, save
from reticent import Confidence, Information, Process, Task, synthetic
from reticent.gym import OutsidePolicy, from_sb3, sb3_vec_env
from reticent.policy.policy import Policy
from reticent.problem.bound import Bound
from reticent.solve import a2c
from reticent.solve.certificate import ceiling, dual_floor, floor_task
from reticent.solve.sharpen import sharp_policy
from reticent.solve.value_iteration import Settings, initialise, iterate
from reticent.solve.value_iteration import policy_of as iterated_policy

CASES: dict[str, Bound] = {
    "L_B 0.9": Confidence(0.9),
    "L_B 0.99": Confidence(0.99),
    "1 bit": Information(1.0),
}
WITHIN = (0.05, 0.02, 0.01)
KEPT = RESULTS / "race"
DRAWS, JUDGED_EPISODES, JUDGED_SEED = 256, 2_048, 1
OUR_STEPS, OUR_ROUNDS = 2_000_000, 150
# Outside agents learn for so long, in pieces that grow.
OUTSIDE_SECONDS, FIRST_PIECE, GROWTH = 100.0, 50_000, 1.5
ENVIRONMENTS, WIDTH = 64, 256
NETWORKS = {"net_arch": [WIDTH, WIDTH], "activation_fn": torch.nn.LeakyReLU}
Contender = Callable[[Process], Iterator[Policy]]


def main() -> None:
    asked = sys.argv[1:]
    floors()
    if asked != ["floors"]:
        race(asked or list(CASES))


def task_of(case: str) -> Task:
    return Task(synthetic(), CASES[case])


def floors() -> None:
    """The floor of each case, where it is not there already."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        if (KEPT / f"{case}.json").exists():
            continue
        floored, floor_of = floor_task(task_of(case))
        sharp = sharp_policy(Process.of(floored))
        lower, _, _ = dual_floor(sharp.process, sharp.value, DRAWS, 0)
        (KEPT / f"{case}.json").write_text(json.dumps({"floor_of": floor_of, **vars(lower)}, indent=1) + "\n")
        print(case, lower, floor_of, file=sys.stderr, flush=True)


def race(cases: list[str]) -> None:
    """Every contender on these cases; what was known of them is forgotten."""
    kept = KEPT / "points.json"
    points = [p for p in json.loads(kept.read_text()) if p["case"] not in cases] if kept.exists() else []
    for case in cases:
        process = Process.of(task_of(case))
        iterated = list(_timed(_iteration(process)))
        value = iterated[-1][1].value  # type: ignore[attr-defined]
        for name, contender in CONTENDERS.items():
            for seconds, policy in iterated if contender is _iteration else _timed(contender(process)):
                cost = ceiling(process, policy, JUDGED_EPISODES, JUDGED_SEED, value).value
                points.append({"case": case, "who": name, "seconds": seconds, "cost": cost})
                print(case, name, f"{seconds:.1f} s: {cost:.3f}", file=sys.stderr, flush=True)
        kept.write_text(json.dumps(points, indent=1) + "\n")
    show(points)


def show(points: list[dict[str, Any]]) -> None:
    """The table and the figure."""
    floor = {case: json.loads((KEPT / f"{case}.json").read_text()) for case in CASES}
    rows = [
        row
        for case in CASES
        if (own := [p for p in points if p["case"] == case])
        for row in _rows(case, floor[case]["value"], own)
    ]
    bounds = (
        f"{case} {f['value']:.2f} [{f['low']:.2f}, {f['high']:.2f}] ({f['floor_of']})" for case, f in floor.items()
    )
    notes = [
        "Synthetic problem, lambda 50, C_T 1, C_B 50. Seconds of training, compilation included, judging not, until "
        "the cost was first within 5, 2 and 1 % of the floor, at checkpoints. Costs are estimates over "
        f"{JUDGED_EPISODES:,} episodes with the martingale of a value as control variate; policies act greedily.",
        f"Our agent as it comes (2 x 128, {OUR_STEPS:,} steps, rounded up to whole updates); value iteration with "
        f"{OUR_ROUNDS} rounds. "
        f"Stable-Baselines3 with {ENVIRONMENTS} environments in one compiled step, our agent's observations, "
        f"2 x {WIDTH} leaky ReLU, rewards scaled, no discount, otherwise its own settings (PPO: "
        f"{PPO_STEPS} steps per environment, minibatches of {PPO_BATCH}), for {OUTSIDE_SECONDS:g} s.",
        f"Floors: {'; '.join(bounds)}. That of 1 bit is of an easier problem: nobody may ever come near it.",
        "Asked: the best final cost of Stable-Baselines3 in a tenth of its time.",
    ]
    headings = ["bound", "who", "within 5 %", "2 %", "1 %", "final cost", "above the floor", "seconds in all"]
    headings.append("seconds to Stable-Baselines3's best final cost")
    save("race", "Time to quality", headings, rows, notes)
    _figure(points, floor).save(FOLDER.parent / "docs" / "race.png", scale_factor=2)


def _rows(case: str, floor: float, points: list[dict[str, Any]]) -> Iterator[list[str]]:
    runs = {name: [p for p in points if p["who"] == name] for name in CONTENDERS}
    best_outside = min(run[-1]["cost"] for name, run in runs.items() if name in OUTSIDE)
    for name, run in runs.items():
        reached = [_first(run, floor * (1 + share)) for share in WITHIN]
        final = run[-1]
        above = f"{final['cost'] / floor - 1:.1%}"
        yield [
            case,
            name,
            *reached,
            f"{final['cost']:.2f}",
            above,
            f"{final['seconds']:.0f}",
            _first(run, best_outside),
        ]


def _first(run: list[dict[str, Any]], cost: float) -> str:
    return next((f"{point['seconds']:.0f}" for point in run if point["cost"] <= cost), "-")


def _figure(points: list[dict[str, Any]], floor: dict[str, Any]) -> alt.HConcatChart:
    def panel(case: str) -> alt.FacetChart | alt.LayerChart:
        here = pl.DataFrame([p for p in points if p["case"] == case])
        # From below the floor to above the worst that anybody ended with; first attempts may lie beyond.
        ends = here.group_by("who").last()["cost"]
        shown = [0.98 * floor[case]["value"], 1.08 * ends.max()]  # type: ignore[operator]
        colour = alt.Color("who:N", sort=list(CONTENDERS), title=None, scale=alt.Scale(range=COLOURS))
        lines = (
            alt.Chart(here)
            .mark_line(point=True, clip=True)
            .encode(
                x=alt.X("seconds:Q", scale=alt.Scale(type="log", nice=False, padding=8), title="seconds of training"),
                y=alt.Y("cost:Q", scale=alt.Scale(domain=shown, nice=False), title="cost"),
                color=colour,
            )
        )
        rule = (
            alt.Chart(pl.DataFrame({"floor": [floor[case]["value"]]})).mark_rule(strokeDash=[4, 3]).encode(y="floor:Q")
        )
        return alt.layer(lines, rule).properties(title=f"{case} (dashed: certified floor)", width=260, height=240)

    return alt.hconcat(*(panel(case) for case in CASES if any(p["case"] == case for p in points)))


def _timed(pieces: Iterator[Policy]) -> Iterator[tuple[float, Policy]]:
    """What each piece of training has reached, and the seconds of training until then."""
    spent = 0.0
    while True:
        started = time.perf_counter()
        policy = next(pieces, None)
        spent += time.perf_counter() - started
        if policy is None:
            return
        yield spent, policy


def _agent(process: Process) -> Iterator[Policy]:
    recipe = a2c.Recipe()
    pieces = a2c.training(process, recipe, a2c.initialise(process, recipe, 0), OUR_STEPS)
    for piece, (state, _) in enumerate(pieces, 1):
        jax.block_until_ready(state)
        if piece in (1, 2, 3, 5, 8, 11, 14, 17, 20):
            yield a2c.policy_of(process, recipe, state)


def _iteration(process: Process) -> Iterator[Policy]:
    settings = Settings(rounds=OUR_ROUNDS, tolerance=0.0)
    for state, _ in iterate(process, settings, initialise(process, settings, 0)):
        if int(state.round) in (5, 10, 20, 35, 60, 100, settings.rounds):
            yield iterated_policy(process, settings, state)


PPO_STEPS, PPO_BATCH = 64, 1024


def _outside(make: Callable[..., Any], **settings: Any) -> Contender:
    def contender(process: Process) -> Iterator[Policy]:
        torch.set_num_threads(1)
        environments = sb3_vec_env("reticent/Problem-v0", ENVIRONMENTS, problem=process, inputs="rich")
        scaled = VecNormalize(environments, norm_obs=False, gamma=1.0)
        model = make("MlpPolicy", scaled, gamma=1.0, policy_kwargs=NETWORKS, seed=0, device="cpu", **settings)
        policy = OutsidePolicy(process, "rich", from_sb3(model))
        piece, spent = FIRST_PIECE, 0.0
        while spent < OUTSIDE_SECONDS:
            started = time.perf_counter()
            model.learn(int(piece), reset_num_timesteps=False)
            spent += time.perf_counter() - started
            piece *= GROWTH
            yield policy

    return contender


OUTSIDE: dict[str, Contender] = {
    "Stable-Baselines3 A2C": _outside(A2C),
    "Stable-Baselines3 PPO": _outside(PPO, n_steps=PPO_STEPS, batch_size=PPO_BATCH),
}
CONTENDERS: dict[str, Contender] = {"our agent": _agent, "our value iteration": _iteration, **OUTSIDE}
COLOURS = ["#c0392b", "#7b1e12", "#5b7fb5", "#2563a8"]

if __name__ == "__main__":
    main()
