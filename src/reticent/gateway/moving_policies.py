"""The policies of problems that go on, in numpy: from what is public to a sensor, or silence."""

import abc

import numpy as np

from reticent.belief.information import secret_information_bits, useful_information_bits
from reticent.errors import InputError
from reticent.gateway.draws import Draws
from reticent.guard.ongoing import MonitoringRules, OngoingState
from reticent.policy.ongoing_features import long_run_costs, ongoing_features, ongoing_seen, step_costs
from reticent.policy.ongoing_settings import rhythm, task_with_kernels, threshold_of, weight_of
from reticent.policy.perceptron import perceptron
from reticent.policy.settings import Inputs, actor_settings, check_network
from reticent.policy.store import PolicyFile


class MovingChooser(abc.ABC):
    """Scores of the sensors and, last, of silence; the highest of what is allowed is chosen."""

    def __init__(self, file: PolicyFile) -> None:
        self.task = task_with_kernels(file)
        self.rules = MonitoringRules(self.task)

    @abc.abstractmethod
    def scores(self, public: OngoingState, rng: Draws) -> np.ndarray:
        """The scores."""

    def act(self, public: OngoingState, rng: Draws) -> int:
        """Index of a sensor, or one past the last sensor for silence."""
        return int(np.where(public.allowed, self.scores(public, rng), -np.inf).argmax())


class MovingActor(MovingChooser):
    """The network policy."""

    def __init__(self, file: PolicyFile) -> None:
        super().__init__(file)
        inputs, width, self._greedy = actor_settings(file)
        self._inputs: Inputs = inputs
        sensors, secrets, useful, _ = self.rules.channel.shape
        check_network(file, ongoing_seen(self._inputs, secrets, useful, sensors), sensors + 1, width)
        self._layers = [(file.arrays[f"layers.{i}.weight"], file.arrays[f"layers.{i}.bias"]) for i in range(3)]

    def scores(self, public: OngoingState, rng: Draws) -> np.ndarray:
        logits = perceptron(self._layers, ongoing_features(self.rules, self._inputs, public))
        # The largest of logits with Gumbel noise is drawn from their softmax.
        return logits if self._greedy else logits + rng.gumbel(size=logits.shape)


class MovingCheapestStep(MovingChooser):
    """One-step lookahead."""

    def scores(self, public: OngoingState, rng: Draws) -> np.ndarray:
        return -step_costs(self.rules, public)


class MovingLongRun(MovingChooser):
    """Lookahead on the value for the long run."""

    def __init__(self, file: PolicyFile) -> None:
        super().__init__(file)
        self._omega, self._kappa = weight_of(file, "omega"), weight_of(file, "kappa")

    def scores(self, public: OngoingState, rng: Draws) -> np.ndarray:
        return -long_run_costs(self.rules, public, self._omega, self._kappa)


class MovingRhythm(MovingChooser):
    """The same sensor every so many steps."""

    def __init__(self, file: PolicyFile) -> None:
        super().__init__(file)
        self._sensor, self._period = rhythm(file)

    def scores(self, public: OngoingState, rng: Draws) -> np.ndarray:
        scores = np.zeros(len(public.allowed))
        # Silence is always allowed, so that it beats the other sensors, and its own where that is not.
        scores[-1] = 1
        scores[self._sensor] = 2 if public.step % self._period == 0 else 0
        return scores


class MovingRandom(MovingChooser):
    """A random allowed sensor, until the provider is sure enough of U."""

    def __init__(self, file: PolicyFile) -> None:
        super().__init__(file)
        self._threshold = threshold_of(file)

    def scores(self, public: OngoingState, rng: Draws) -> np.ndarray:
        return _until_sure(rng.gumbel(size=(len(public.allowed) - 1,)), public, self._threshold)


class MovingInformationGain(MovingChooser):
    """The sensor of the highest I_U - kappa I_S, until the provider is sure enough of U."""

    def __init__(self, file: PolicyFile) -> None:
        super().__init__(file)
        self._kappa, self._threshold = weight_of(file, "kappa"), threshold_of(file)

    def scores(self, public: OngoingState, rng: Draws) -> np.ndarray:
        emissions = self.rules.emissions(public)
        gain = useful_information_bits(public.belief, emissions)
        return _until_sure(
            gain - self._kappa * secret_information_bits(public.belief, emissions), public, self._threshold
        )


def _until_sure(scores: np.ndarray, public: OngoingState, threshold: float) -> np.ndarray:
    """Silence beats every sensor once max_u b(u) reaches the threshold, and none before."""
    sure = public.belief.sum(0).max() >= threshold
    return np.append(scores, np.inf if sure else scores.min() - 1)


KINDS: dict[str, type[MovingChooser]] = {
    "actor": MovingActor,
    "cheapest-step": MovingCheapestStep,
    "long-run": MovingLongRun,
    "every-steps": MovingRhythm,
    "random-sensor": MovingRandom,
    "information-gain": MovingInformationGain,
}


def moving_chooser_of(file: PolicyFile) -> MovingChooser:
    """The policy that a file holds."""
    if file.kind not in KINDS:
        raise InputError(f"This file holds a policy of kind {file.kind!r}, which this version does not know.")
    return KINDS[file.kind](file)
