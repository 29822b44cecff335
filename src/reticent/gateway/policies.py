"""The policies of policy files in numpy: from what is public to a score for each sensor, and for the stop."""

import abc
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from reticent.errors import InputError
from reticent.gateway.draws import Draws
from reticent.guard.rules import PublicState, TaskRules
from reticent.guard.value_kernels import ValueKernels
from reticent.policy.features import features
from reticent.policy.perceptron import Layer, perceptron
from reticent.policy.settings import Inputs, actor_settings, check_network, described, lookahead_settings, seen
from reticent.policy.store import PolicyFile
from reticent.policy.value import continuation_value, q_values


class Chooser(abc.ABC):
    """Scores of the sensors and, last, of the stop; the highest is chosen.

    `rules` are those that it acts by; `draws` says whether it may choose otherwise when it is asked again.
    """

    rules: TaskRules
    draws = False

    @abc.abstractmethod
    def scores(self, public: PublicState) -> Float[np.ndarray, "*N A_plus_stop"]:
        """The scores, minus infinity for a sensor that is not allowed."""

    def act(self, public: PublicState, rng: Draws) -> Int[Any, "*N"]:
        """Index of a sensor, or one past the last sensor to stop: of one subject, or of each of many."""
        del rng
        return self.scores(public).argmax(-1)


class Actor(Chooser):
    """The network policy: see `reticent.policy.actor`."""

    def __init__(self, file: PolicyFile) -> None:
        inputs, width, greedy = actor_settings(file)
        self.draws = not greedy
        self.inputs: Inputs = inputs
        sensors, secrets, useful, _ = file.task.model.channel.shape
        check_network(file, seen(self.inputs, secrets, useful, sensors), sensors + 1, width)
        self.rules, self.layers = TaskRules(file.task), _layers(file)

    def scores(self, public: PublicState) -> np.ndarray:
        logits = perceptron(self.layers, features(self.rules, self.inputs, public))
        return np.where(public.allowed, logits, -np.inf)

    def act(self, public: PublicState, rng: Draws) -> Int[Any, "*N"]:
        scores = self.scores(public)
        # The largest of logits with Gumbel noise is drawn from their softmax.
        return (scores + rng.gumbel(size=scores.shape) if self.draws else scores).argmax(-1)


class Lookahead(Chooser):
    """The sensor of the lowest one-step cost to go, or the stop: see `reticent.policy.lookahead`."""

    def __init__(self, file: PolicyFile) -> None:
        width, kernels = lookahead_settings(file, file.task.enforcement)
        check_network(file, described(*file.task.model.prior.shape), 1, width)
        self.rules, self.layers = TaskRules(file.task), _layers(file)
        self._learned = partial(perceptron, self.layers)
        if kernels == "value":
            rule = ValueKernels(self.continuation, self.rules.objective.error_penalty)
            self.rules.enforcement = self.rules.enforcement.with_rule(rule)

    def continuation(self, belief: np.ndarray, spent_bits: Any = 0.0) -> np.ndarray:
        """Learned cost of releasing at least once more, at beliefs [... S U]."""
        return continuation_value(self.rules, self._learned, belief, spent_bits)

    def value(self, belief: np.ndarray, spent_bits: Any) -> np.ndarray:
        """Cost to go at beliefs [... S U]."""
        return np.minimum(self.rules.stop_cost(belief), self.continuation(belief, spent_bits))

    def scores(self, public: PublicState) -> np.ndarray:
        stop = self.rules.stop_cost(public.belief)[..., None]
        return -np.concatenate([q_values(self.rules, self.value, public), stop], axis=-1)

    def act(self, public: PublicState, rng: Draws) -> Int[Any, "*N"]:
        del rng
        sensors, stop = np.split(self.scores(public), [-1], axis=-1)
        # Of costs that are equal the stop's is preferred.
        return np.where(stop[..., 0] >= sensors.max(-1), sensors.shape[-1], sensors.argmax(-1))


def chooser_of(file: PolicyFile) -> Chooser:
    """The policy that a file holds; an `InputError` for a kind that releases no readings."""
    kinds = {"actor": Actor, "lookahead": Lookahead}
    if file.kind not in kinds:
        raise InputError(f"This file holds a policy of kind {file.kind!r}, which this version does not know.")
    return kinds[file.kind](file)


def _layers(file: PolicyFile) -> list[Layer]:
    return [(file.arrays[f"layers.{i}.weight"], file.arrays[f"layers.{i}.bias"]) for i in range(3)]
