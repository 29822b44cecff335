"""What Gymnasium calls to make each environment: the process from its options, then one episode or many at a time."""

from collections.abc import Callable
from typing import Any

from reticent.gym.environment import ReleaseEnv
from reticent.gym.processes import problem_process, recordings_process, synthetic_process
from reticent.gym.spaces import Forbidden
from reticent.gym.vector import ReleaseVectorEnv
from reticent.policy.actor import Inputs
from reticent.process.process import Process


def _one(process_of: Callable[..., Process]) -> Callable[..., ReleaseEnv]:
    def make(inputs: Inputs = "described", forbidden: Forbidden = "stop", **options: Any) -> ReleaseEnv:
        return ReleaseEnv(process_of(**options), inputs, forbidden)

    return make


def _many(process_of: Callable[..., Process]) -> Callable[..., ReleaseVectorEnv]:
    def make(
        num_envs: int, inputs: Inputs = "described", forbidden: Forbidden = "stop", **options: Any
    ) -> ReleaseVectorEnv:
        return ReleaseVectorEnv(process_of(**options), num_envs, inputs, forbidden)

    return make


synthetic_env, problem_env, recordings_env = map(_one, (synthetic_process, problem_process, recordings_process))
synthetic_vector_env, problem_vector_env, recordings_vector_env = map(
    _many, (synthetic_process, problem_process, recordings_process)
)
