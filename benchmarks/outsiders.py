"""Training throughput against agents of others: environment steps per second with learning, all in one run.

The same problem (synthetic, L_B .9), the same observations (the belief) and the same 2 x 256 networks for everybody.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import gymnasium
import jax
import torch
from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv

import reticent.gym  # noqa: F401  (registers the environments)
from benchmarks.catalogue import Measured
from reticent import Confidence, Process, Task, synthetic
from reticent.gym import sb3_vec_env
from reticent.process.cores import cores
from reticent.solve.actor_critic import RECIPES, Recipe, advance, initialise

SYNTHETIC, LIMIT, WIDTH = "reticent/Synthetic-v0", 0.9, 256
OPTIONS = {"confidence": LIMIT, "inputs": "belief"}
# Each is measured for so long, after a start that compiles and warms up.
SECONDS, WARM_UP_STEPS = 10.0, 2_000
NETWORKS = {"net_arch": [WIDTH, WIDTH], "activation_fn": torch.nn.LeakyReLU}


def outsiders() -> Measured:
    speeds = {"TD(0) to the letter, 1 environment": _rate(_literal())}
    outside = {}
    for count in (1, 8, 64):
        outside[f"Stable-Baselines3 A2C, {count} of its own environments"] = _sb3(_own_environments(count))
    for count in (64, 256):
        outside[f"Stable-Baselines3 A2C, {count} in one compiled step"] = _sb3(sb3_vec_env(SYNTHETIC, count, **OPTIONS))
    speeds |= outside
    speeds["reticent, the paper's recipe"] = _ours(RECIPES["a2c"])
    speeds["reticent, default recipe"] = _ours(replace(Recipe(), width=WIDTH, inputs="belief"))
    literal, best = next(iter(speeds.values())), max(outside.values())
    rows = [
        {
            "who": name,
            "environment_steps_per_second": speed,
            "times_the_loop_to_the_letter": speed / literal,
            "times_the_best_of_stable_baselines3": speed / best,
        }
        for name, speed in speeds.items()
    ]
    notes = [
        "Synthetic problem, L_B 0.9, penalty; the belief as input, 2 x 256 leaky ReLU for actor and critic. "
        f"Environment steps per second, learning included, compilation not, over {SECONDS:g} s each. Stable-Baselines3 "
        "with its own settings (a gradient step after 5 steps of all environments), PyTorch with as many threads as "
        "cores or with one, whichever is faster. Its own environments are ours through Gymnasium, one compiled call "
        "each; in one compiled step they are all played in one call (`reticent.gym.sb3_vec_env`).",
        "The default recipe goes over each batch four times, the paper's and Stable-Baselines3's A2C once.",
    ]
    return rows, notes


def _own_environments(count: int) -> VecEnv:
    return make_vec_env(SYNTHETIC, count, env_kwargs=OPTIONS)


def _rate(steps: Iterator[int]) -> float:
    """Environment steps per second of something that yields how many it has done, after warming up."""
    done = 0
    while done < WARM_UP_STEPS:
        done += next(steps)
    done, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < SECONDS:
        done += next(steps)
    return done / passed


def _sb3(environments: VecEnv) -> float:
    rates = []
    for threads in {1, len(cores())}:
        torch.set_num_threads(threads)
        model = A2C("MlpPolicy", environments, policy_kwargs=NETWORKS, seed=0, device="cpu")
        rates.append(_rate(_learning(model)))
    return max(rates)


def _learning(model: A2C) -> Iterator[int]:
    """Some updates at a time: what a call of `learn` costs by itself hardly counts."""
    steps = 100 * model.n_steps * model.n_envs
    while True:
        model.learn(steps, reset_num_timesteps=False)
        yield steps


def _literal() -> Iterator[int]:
    """The paper's algorithm as it is printed, signs mended: one environment, one step, one gradient step."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    environment = gymnasium.make(SYNTHETIC, **OPTIONS)
    seen, _ = environment.reset(seed=0)
    actor, critic = _network(len(seen), int(environment.action_space.n)), _network(len(seen), 1)  # type: ignore
    descend = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
    while True:
        belief = torch.from_numpy(seen)
        choice = torch.distributions.Categorical(logits=actor(belief))
        action = choice.sample()
        seen, reward, terminated, truncated, _ = environment.step(action.item())
        with torch.no_grad():
            rest = 0.0 if terminated else RECIPES["a2c"].discount * critic(torch.from_numpy(seen))[0]
        error = -float(reward) / 10 + rest - critic(belief)[0]
        loss = choice.log_prob(action) * error.detach() + 0.5 * error**2
        descend.zero_grad()
        loss.backward()
        descend.step()
        if terminated or truncated:
            seen, _ = environment.reset()
        yield 1


def _network(inputs: int, outputs: int) -> torch.nn.Module:
    leaky = torch.nn.LeakyReLU
    layers = [torch.nn.Linear(inputs, WIDTH), leaky(), torch.nn.Linear(WIDTH, WIDTH), leaky()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, outputs))


def _ours(recipe: Recipe) -> float:
    process = Process.of(Task(synthetic(), Confidence(LIMIT)))

    def learning() -> Iterator[int]:
        state, updates, total = initialise(process, recipe, 0), 10, jax.numpy.asarray(10_000)
        while True:
            state, _ = jax.block_until_ready(advance(process, recipe, state, jax.numpy.asarray(updates), total))
            yield updates * recipe.steps_per_update

    return _rate(learning())
