"""The policies of policy files in numpy: from what is public to a score for each sensor, and for the stop."""

import abc
import math
from typing import NamedTuple

import numpy as np

from reticent.gateway.networks import Description, Network
from reticent.gateway.numeric import Joint, Sensors
from reticent.gateway.value import Used, Value
from reticent.policy.settings import GAIN_SCALE, actor_settings, check_network, seen
from reticent.policy.store import PolicyFile


class Public(NamedTuple):
    """All that a policy may see at one standing: what each sensor would send, and which sensors are allowed.

    `kernels` [A O Z] is the public rule under a guarantee; without one `bits` [A] is what each release would add to
    the ledger.
    """

    belief: np.ndarray
    spent_bits: float
    joint: Joint
    allowed: list[bool]
    kernels: np.ndarray | None
    bits: list[float] | None


class Chooser(abc.ABC):
    """Scores of the sensors and, last, of the stop; the highest is chosen.

    `draws`: whether it may choose otherwise when it is asked again.
    """

    draws = False

    @abc.abstractmethod
    def scores(self, public: Public) -> list[float]:
        """The scores, minus infinity for a sensor that is not allowed."""

    @abc.abstractmethod
    def act(self, public: Public, rng: np.random.Generator) -> int:
        """Index of a sensor, or one past the last sensor to stop."""


class Actor(Chooser):
    """The network policy: see `reticent.policy.actor`."""

    def __init__(self, file: PolicyFile, sensors: Sensors) -> None:
        self.inputs, width, self.greedy = actor_settings(file)
        self.draws = not self.greedy
        shape = sensors.secrets, sensors.useful
        check_network(file, seen(self.inputs, *shape, sensors.sensors), sensors.sensors + 1, width)
        self.describe = Description(*shape)
        first = file.arrays["layers.0.weight"]
        self.network = Network(file.arrays, first if self.inputs == "belief" else self.describe.first_weight(first))
        self.used = Used(file.task.bound, sensors.secrets)
        self.releases_worth = file.task.objective.error_penalty / file.task.objective.time_cost

    def scores(self, public: Public) -> list[float]:
        logits = self.network(self.features(public)).tolist()
        for sensor, allowed in enumerate(public.allowed):
            if not allowed:
                logits[sensor] = -math.inf
        return logits

    def act(self, public: Public, rng: np.random.Generator) -> int:
        scores = self.scores(public)
        if not self.greedy:
            # The largest of logits with Gumbel noise is drawn from their softmax.
            scores = [score + noise for score, noise in zip(scores, rng.gumbel(size=len(scores)).tolist(), strict=True)]
        return scores.index(max(scores))

    def features(self, public: Public) -> np.ndarray:
        """What the network sees, and a one."""
        if self.inputs == "belief":
            return np.append(public.belief, 1.0).astype(np.float32)
        joint, more = public.joint, [float(allowed) for allowed in public.allowed]
        if self.inputs == "rich":
            more += [math.tanh(gain / GAIN_SCALE) for gain in self._gains(public)]
        used = self.used(joint.by_secret, public.spent_bits)
        return self.describe.one(public.belief, used, max(joint.by_useful), more)

    def _gains(self, public: Public) -> list[float]:
        """What each sensor gains over stopping now if one stops right after it, in releases' worth of cost."""
        useful, kernels = public.joint.useful, public.kernels
        right = np.maximum.reduce(useful, 1)
        if kernels is not None:
            right *= kernels[:, 0]
            merged = useful @ kernels[:, 1:].swapaxes(1, 2)
            right = np.concatenate([right, np.maximum.reduce(merged, 1)], axis=1)
        now = max(public.joint.by_useful)
        return [self.releases_worth * (after - now) - 1 for after in np.add.reduce(right, 1).tolist()]


class Lookahead(Chooser):
    """The sensor of the lowest one-step cost to go, or the stop: see `reticent.policy.lookahead`."""

    def __init__(self, value: Value, sensors: Sensors) -> None:
        self.value, self.sensors = value, sensors

    def scores(self, public: Public) -> list[float]:
        value, kernels = self.value, public.kernels
        weighted = self.sensors.likelihoods * public.belief
        spent = None if public.bits is None else public.spent_bits + np.array(public.bits)
        costs = value.weighted(weighted, spent)
        if kernels is not None:
            merged = value.weighted(kernels[:, 1:] @ weighted)
            costs = np.concatenate([costs * kernels[:, 0], merged], axis=1)
        going_on = (value.time_cost + costs.sum(1)).tolist()
        stop = -value.error_penalty * (1 - max(public.joint.by_useful))
        each = zip(going_on, public.allowed, strict=True)
        return [*(-cost if allowed else -math.inf for cost, allowed in each), stop]

    def act(self, public: Public, rng: np.random.Generator) -> int:
        del rng
        *sensors, stop = self.scores(public)
        best = max(sensors)
        return len(sensors) if stop >= best else sensors.index(best)
