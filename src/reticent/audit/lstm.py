"""Recurrent attacker with early stopping on held-out people.

Several seeds are trained at once for a while; then the one with the lowest loss on held-out episodes goes on until it
no longer improves, and the network with the lowest held-out loss is kept. An attacker that is fitted again, on more
traces, also keeps its earlier networks as candidates, so that its learning curve does not fall except by chance. Any
number of episodes uses the same compiled programs.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from reticent.audit import training
from reticent.audit.attacker import Attacker
from reticent.audit.features import Scale
from reticent.audit.network import Network, final_posterior
from reticent.audit.posterior import Posterior, frequencies, posterior_of
from reticent.audit.sequences import Sequences, sequences_of
from reticent.audit.traces import Traces
from reticent.types import Array

# Training ends after this many evaluations without a lower held-out loss.
PATIENCE = 14
# Episodes per compiled call of evaluation and prediction.
EPISODES_AT_ONCE = 1024
HELD_OUT = 0.2
# Networks learn from the steps within which so many episodes end, rounded up to a multiple.
SHARE_ENDED, ROUNDED_STEPS = 0.99, 4


class Candidate(NamedTuple):
    """A trained network, the scale and prior of its training traces, and its held-out loss."""

    network: Network
    scale: Scale | None
    prior: Float[np.ndarray, "S U"]
    loss: float


class Lstm(Attacker):
    """LSTM over the releases, with the stop as a step of its own. Long episodes are truncated."""

    name = "LSTM"

    def __init__(self, seed: int = 0, report: Callable[[int, float], None] | None = None) -> None:
        self.seed, self.report = seed, report
        self.candidates: list[Candidate] = []

    def fit(self, traces: Traces) -> None:
        held_out = held_out_rows(traces, self.seed)
        judged = traces.take(held_out)
        # Earlier candidates are evaluated on the same held-out episodes as the new one.
        again = [
            one._replace(loss=float(training.losses(training.stacked(one.network), *_evaluation(judged, one))[0]))
            for one in self.candidates
        ]
        self.candidates = [*again, self._trained(traces.take(~held_out), judged, traces)]
        self.best = min(self.candidates, key=lambda one: one.loss)

    def posterior(self, traces: Traces) -> Posterior:
        seen, prior = sequences_of(traces, self.best.scale), self.best.prior
        possible = jnp.asarray(prior.reshape(-1) > 0)
        starts = range(0, len(traces), EPISODES_AT_ONCE)
        pieces = [
            final_posterior(self.best.network, possible, seen.take(_piece(start, len(traces)))) for start in starts
        ]
        belief = np.concatenate(pieces)[: len(traces)].astype(float).reshape(-1, *prior.shape)
        # Before the first release the posterior is the prior.
        belief = np.where((seen.length > 0)[:, None, None], belief / belief.sum((1, 2), keepdims=True), prior)
        return posterior_of(belief, prior)

    def _trained(self, trained_on: Traces, judged: Traces, both: Traces) -> Candidate:
        seen = sequences_of(_until_most_ended(trained_on), scale := Scale.of(both))
        best = Candidate(training.initial_networks(self.seed, seen, both), scale, frequencies(both), np.inf)
        possible, *evaluation = _evaluation(judged, best)
        networks, optimiser = best.network, training.optimiser_states(best.network)
        rng, waited, portion, seeds = _rng(self.seed), 0, training.portion_of(seen), training.SEEDS
        for done in range(training.BETWEEN, training.updates_of(seen) + 1, training.BETWEEN):
            for _ in range(0, training.BETWEEN, portion):
                rows = rng.integers(len(seen.sensor), size=(portion, seeds, training.BATCH))
                networks, optimiser = training.advance(networks, optimiser, possible, seen.take(rows))
            losses = np.asarray(training.losses(networks, possible, *evaluation))
            waited = 0 if losses.min() < best.loss else waited + 1
            if waited == 0:
                best = best._replace(
                    network=training.selected(networks, int(losses.argmin())), loss=float(losses.min())
                )
            if self.report:
                self.report(done, best.loss)
            if waited >= PATIENCE:
                break
            if done == training.UPDATES_OF_ALL_SEEDS:
                lead, seeds = int(losses.argmin()), 1
                networks, optimiser = training.only(networks, lead), training.only(optimiser, lead)
        return best


def held_out_rows(traces: Traces, seed: int) -> Bool[np.ndarray, " N"]:
    """Episodes held out from training: those of some people, the same ones whichever others are present."""
    chance = _rng(seed).random(int(traces.person.max()) + 1)[traces.person]
    held_out = chance < max(HELD_OUT, float(chance.min()) + 1e-12)
    return held_out if not held_out.all() else np.arange(len(traces)) % 5 == 0


def _until_most_ended(traces: Traces) -> Traces:
    """Without the steps that few episodes reach, for which every batch would have room. Rounded up, so that samples of
    the same traces have one shape."""
    reached = int(np.quantile(traces.length, SHARE_ENDED)) + 1
    return traces.padded(min(traces.longest, -(-reached // ROUNDED_STEPS) * ROUNDED_STEPS))


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _evaluation(judged: Traces, candidate: Candidate) -> tuple[Array, Sequences, Float[np.ndarray, " N"]]:
    """Possible pairs, held-out episodes and their weights, padded to one shape for any number of episodes."""
    count = min(len(judged), EPISODES_AT_ONCE)
    weight = (np.arange(EPISODES_AT_ONCE) < count) / count
    seen = sequences_of(judged, candidate.scale).take(_piece(0, count))
    return jnp.asarray(candidate.prior.reshape(-1) > 0), seen, weight


def _piece(start: int, count: int) -> Int[np.ndarray, " E"]:
    """Indices of one call's episodes; the last episode is repeated to fill the shape."""
    return np.minimum(start + np.arange(EPISODES_AT_ONCE), count - 1)
