"""Time to quality: seconds of training until a policy's cost is within 5, 2 and 1 % of the certified lower bound.

The clock stands still while policies are judged, and runs while they are compiled. All are judged with the value that
value iteration ends with as control variate.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.vec_env import VecNormalize

from benchmarks.catalogue import Measured
from benchmarks.record import interval
from reticent import Confidence, Information, Process, Task, synthetic
from reticent.evaluate.estimate import Estimate
from reticent.gym import OutsidePolicy, from_sb3, sb3_vec_env
from reticent.policy.policy import Policy
from reticent.problem.bound import Bound
from reticent.solve import actor_critic
from reticent.solve.certificate import dual_bound, relaxed_task, upper_bound
from reticent.solve.refine import refined_policy
from reticent.solve.value_iteration import Settings, initialise, iterate
from reticent.solve.value_iteration import policy_of as iterated_policy

BOUNDS: tuple[Bound, ...] = (Confidence(0.9), Confidence(0.99), Information(1.0))
WITHIN = (0.05, 0.02, 0.01)
DRAWS, JUDGED_EPISODES, JUDGED_SEED = 256, 2_048, 1
OUR_STEPS, OUR_ROUNDS = 2_000_000, 150
# Outside agents learn for so long, in pieces that grow.
OUTSIDE_SECONDS, FIRST_PIECE, GROWTH = 100.0, 50_000, 1.5
ENVIRONMENTS, WIDTH = 64, 256
NETWORKS = {"net_arch": [WIDTH, WIDTH], "activation_fn": torch.nn.LeakyReLU}
Contender = Callable[[Process], Iterator[Policy]]


def race() -> Measured:
    """Every contender at every bound; then the lower bounds, so that nothing is compiled for them beforehand."""
    runs = {bound: list(_run(bound)) for bound in BOUNDS}
    return [row for bound, own in runs.items() for row in _rows(bound, own)], NOTES


def _run(bound: Bound) -> Iterator[tuple[str, list[float], list[float]]]:
    """Who, the seconds at each checkpoint, and the costs there."""
    process = Process.of(Task(synthetic(), bound))
    iterated = list(_timed(_iteration(process)))
    value = iterated[-1][1].value  # type: ignore[attr-defined]
    for name, contender in CONTENDERS.items():
        seconds, costs = [], []
        for second, policy in iterated if contender is _iteration else _timed(contender(process)):
            seconds.append(second)
            costs.append(upper_bound(process, policy, JUDGED_EPISODES, JUDGED_SEED, value).value)
        print(bound, name, seconds, costs, file=sys.stderr, flush=True)
        yield name, seconds, costs


def _rows(bound: Bound, runs: list[tuple[str, list[float], list[float]]]) -> Iterator[dict[str, Any]]:
    lower, bound_of = _lower_bound(Task(synthetic(), bound))
    best_outside = min(costs[-1] for name, _, costs in runs if name in OUTSIDE)
    for name, seconds, costs in runs:
        row = {"bound": bound.name, "limit": bound.number, **interval("lower_bound", lower)}
        row |= {"lower_bound_of": bound_of, "who": name, **_summary(seconds, costs, lower.value)}
        yield {**row, "seconds_to_best_outside": _first(seconds, costs, best_outside)}


def _lower_bound(task: Task) -> tuple[Estimate, str]:
    """What no policy can cost less than, and of which problem that is."""
    relaxed, bound_of = relaxed_task(task)
    sharp = refined_policy(Process.of(relaxed))
    lower, _, _ = dual_bound(sharp.process, sharp.value, DRAWS, 0)
    return lower, bound_of


def _summary(seconds: list[float], costs: list[float], lower: float) -> dict[str, Any]:
    """When the cost was first so near to the lower bound; how it ended; and both at every checkpoint."""
    reached = {f"seconds_to_{share:.0%}": _first(seconds, costs, (1 + share) * lower) for share in WITHIN}
    ended = {"final_cost": costs[-1], "above_lower_bound": costs[-1] / lower - 1, "seconds_in_all": seconds[-1]}
    return {**reached, **ended, "seconds": seconds, "costs": costs}


def _first(seconds: list[float], costs: list[float], enough: float) -> float | None:
    return next((second for second, cost in zip(seconds, costs, strict=True) if cost <= enough), None)


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
    recipe = actor_critic.Recipe()
    pieces = actor_critic.training(process, recipe, actor_critic.initialise(process, recipe, 0), OUR_STEPS)
    for piece, (state, _) in enumerate(pieces, 1):
        jax.block_until_ready(state)
        if piece in (1, 2, 3, 5, 8, 11, 14, 17, 20):
            yield actor_critic.policy_of(process, recipe, state)


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


NOTES = [
    "Synthetic problem, lambda 50, C_T 1, C_B 50. Seconds of training, compilation included, judging not, until the "
    "cost was first within 5, 2 and 1 % of the lower bound, at checkpoints. Costs are estimates over "
    f"{JUDGED_EPISODES:,} episodes with the martingale of a value as control variate; policies act greedily. Where the "
    "lower bound is that of an easier problem, nobody may ever come near it.",
    f"Our agent as it comes (2 x 128, {OUR_STEPS:,} steps, rounded up to whole updates); value iteration with "
    f"{OUR_ROUNDS} rounds. Stable-Baselines3 with {ENVIRONMENTS} environments in one compiled step, our agent's "
    f"observations, 2 x {WIDTH} leaky ReLU, rewards scaled, no discount, otherwise its own settings (PPO: {PPO_STEPS} "
    f"steps per environment, minibatches of {PPO_BATCH}), for {OUTSIDE_SECONDS:g} s.",
]
OUTSIDE: dict[str, Contender] = {
    "Stable-Baselines3 A2C": _outside(A2C),
    "Stable-Baselines3 PPO": _outside(PPO, n_steps=PPO_STEPS, batch_size=PPO_BATCH),
}
CONTENDERS: dict[str, Contender] = {
    "our agent": _agent,
    "our value iteration": _iteration,
    **OUTSIDE,
}
