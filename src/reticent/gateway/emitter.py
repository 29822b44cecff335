"""What leaves in place of a reading, and what is known from it: drawn by a public rule, heard by Bayes."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from reticent.belief.bayes import update
from reticent.errors import InputError
from reticent.gateway.draws import Draws
from reticent.problem.bound import Knowledge
from reticent.problem.enforcement import Enforcement
from reticent.problem.model import Model


class ImpossibleReading(InputError):  # noqa: N818  (what it is says it)
    """A reading that has probability zero under the model and the belief so far: the model does not fit."""


@dataclass(frozen=True)
class Surprise:
    """How unlikely what was sent was: -ln p(symbol), and mean and variance of that under the model, in nats."""

    nats: float
    mean: float
    variance: float


@dataclass(frozen=True, eq=False)
class Sent:
    """What leaves: an index into `Emitter.symbols`, and how surprising it is.

    `chances` [Z] is the public rule as far as this symbol goes: of each reading the chance of being sent as it; None
    where readings are sent as they are.
    """

    symbol: int
    surprise: Surprise
    chances: np.ndarray | None


class Emitter:
    """The channel of a model. `symbols` names what can be sent: the readings, then the merged symbols."""

    assumption: str
    """What the bound relies on, in words."""
    sensors: tuple[str, ...]
    symbols: tuple[str, ...]

    def __init__(self, model: Model, enforcement: Enforcement) -> None:
        self.sensors = model.sensors
        self.symbols = (*model.symbols, *enforcement.merged_symbols(model.useful))
        # q(z | a, s, u), reading by reading: [A Z S U].
        self._likelihoods = np.ascontiguousarray(np.moveaxis(model.channel, -1, 1))
        # The same by pairs: [A Z X].
        self._by_pair = self._likelihoods.reshape(*self._likelihoods.shape[:2], -1)

    @property
    def readings(self) -> int:
        """How many symbols are readings."""
        return self._likelihoods.shape[1]

    def own(self, known: Knowledge) -> np.ndarray:
        """What the provider with the model believes, [... S U]."""
        return known.belief

    def sent(self, known: Knowledge, sensor: int, kernel: np.ndarray | None, reading: int, rng: Draws) -> Sent:
        """What is sent in place of this reading, under the rule in force; `kernel` [O Z] as in `Decision`."""
        if not 0 <= reading < self.readings:
            raise InputError(f"There is no reading {reading}: the model has {self.readings}.")
        symbol = reading
        if kernel is not None:
            if not np.vdot(self._likelihoods[sensor, reading], self.own(known)) > 0:
                raise self._impossible(sensor, reading)
            option = _draw(kernel[:, reading].tolist(), rng)
            symbol = reading if option == 0 else self.readings + option - 1
        return Sent(symbol, self._surprise(self.own(known), sensor, kernel, symbol), self._chances(kernel, symbol))

    def likelihood(self, sensor: int, symbol: int, chances: np.ndarray | None) -> Float[np.ndarray, "S U"]:
        """q(symbol | sensor, ., .) up to a factor, under the rule in force; zero everywhere where the rule forbids it.

        Only sums of what is not negative: on any processor the same but for the last digits. The program that finds
        the rule is not like that, so whoever follows takes the rule that was in force.
        """
        likelihoods = self._likelihoods[sensor]
        if symbol >= len(likelihoods):
            assert chances is not None
            return np.tensordot(chances, likelihoods, 1)
        # The chance of being sent as it is cancels, but must not be zero.
        return likelihoods[symbol] if chances is None or chances[symbol] > 0 else 0 * likelihoods[symbol]

    def heard(self, known: Knowledge, sensor: int, symbol: int, chances: np.ndarray | None) -> np.ndarray:
        """The belief once this sensor has sent this symbol, by Bayes. `chances`: as in `Sent`."""
        after, possible = update(self.own(known), self.likelihood(sensor, symbol, chances))
        if not possible:
            raise self._impossible(sensor, symbol)
        return after

    def _chances(self, kernel: np.ndarray | None, symbol: int) -> np.ndarray | None:
        """Of each reading the chance of being sent as this symbol."""
        if kernel is None:
            return None
        if symbol >= self.readings:
            return kernel[1 + symbol - self.readings]
        alone = np.zeros(self.readings)
        alone[symbol] = kernel[0, symbol]
        return alone

    def _surprise(self, belief: np.ndarray, sensor: int, kernel: np.ndarray | None, symbol: int) -> Surprise:
        law = self._by_pair[sensor] @ belief.reshape(-1)
        if kernel is not None:
            law = np.concatenate([law * kernel[0], np.dot(kernel[1:], law)])
        logarithms = np.log(np.maximum(law, np.finfo(float).tiny))
        weighted = law * logarithms
        mean = -float(np.add.reduce(weighted))
        return Surprise(-float(logarithms[symbol]), mean, max(float(np.dot(weighted, logarithms)) - mean * mean, 0.0))

    def _impossible(self, sensor: int, symbol: int) -> ImpossibleReading:
        return ImpossibleReading(
            f"Sensor {self.sensors[sensor]!r} gave {self.symbols[symbol]!r}, which has probability zero under the "
            "model and the belief so far: the model does not fit this sensor."
        )


def _draw(chances: list[float], rng: Draws) -> int:
    """An index, drawn by its chance: never one whose chance is zero."""
    left = rng.random()
    for index, chance in enumerate(chances):
        left -= chance
        if left < 0:
            return index
    return chances.index(max(chances))
