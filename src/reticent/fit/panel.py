"""A panel from recordings: what providers would take for true who learned from other people, or trust readings more.

The codes are the model's, so that what is sent means the same to all. Each provider has a model of some of the people:
of each alone, of groups of people whose readings are alike, or of as many people drawn from them with replacement. What
a group was never recorded with, it takes from everybody. Tempering draws the laws of pairs together because successive
readings resemble each other; a provider who does so less counts every reading `sharpen` times as much.
"""

import math
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from reticent.data.readings import Readings
from reticent.data.trajectories import trajectories
from reticent.errors import InputError
from reticent.fit.codes import Counts, counts_of, smoothed
from reticent.fit.tempering import Tempering
from reticent.fit.transition import fit_transition
from reticent.problem.codebook import Codebook
from reticent.problem.model import Model

PanelKind = Literal["people", "clusters", "bootstrap"]
REFITS = 20


def fit_panel(
    model: Model,
    recorded: Readings,
    codes: Int[np.ndarray, "N A"],
    kind: str,
    sharpen: float = 1.0,
    seed: int = 0,
) -> Model:
    """The fitted model with a panel of the people whom it was fitted to, whose readings have these codes."""
    if kind not in get_args(PanelKind):
        raise InputError(f"panel is one of {', '.join(get_args(PanelKind))}, but is {kind!r}.")
    if not (math.isfinite(sharpen) and sharpen > 0):
        raise InputError(f"sharpen says how many times as much a reading counts, above 0, but is {sharpen}.")
    assert model.fitted is not None
    codebook, tempering = Codebook.of(model), Tempering(**model.fitted["tempering"])
    counts = _completed(counts_of(recorded, codes, codebook.owned))
    lives = trajectories(recorded, codes, model.fitted["step"]) if model.moves else None
    panel = []
    for weight in _weights(counts, kind, seed):
        channel = tempering.applied(smoothed(counts, codebook.owned, weight), model.prior, sharpen)
        # Somebody whose stretches are all too short for a trajectory moves like everybody.
        lived = weight[:0] if lives is None else weight[np.isin(np.unique(recorded.person), lives.person)]
        moves = {} if lives is None or not lived.any() else {"transition": fit_transition(lives, model.prior, lived)}
        panel.append({"channel": channel, **moves})
    model.fitted["panel"] = {"kind": kind, "sharpen": sharpen}
    return model.with_panel(panel)


def _completed(counts: Counts) -> Counts:
    """Everybody with the laws of all others for the pairs that they were not recorded with."""
    seen = counts.seen.sum(0)
    mean = counts.law.sum(0) / np.maximum(seen, 1)[None, :, :, None]
    law = np.where(counts.seen[:, None, :, :, None], counts.law, mean[None])
    return Counts(law, np.broadcast_to(seen > 0, counts.seen.shape))


def _weights(counts: Counts, kind: str, seed: int) -> Float[np.ndarray, "G P"]:
    """How much each person counts for each provider."""
    people = len(counts.law)
    if kind == "people":
        return np.eye(people)
    if kind == "bootstrap":
        rng = np.random.default_rng(seed)
        return rng.multinomial(people, np.full(people, 1 / people), REFITS).astype(float)
    return _clusters(counts, seed)


def _clusters(counts: Counts, seed: int) -> Float[np.ndarray, "G P"]:
    """About as many groups as a group has people, by the Hellinger distance between their laws."""
    from sklearn.cluster import KMeans

    people = len(counts.law)
    groups = min(people, math.ceil(math.sqrt(people)))
    found = KMeans(groups, random_state=seed).fit_predict(np.sqrt(counts.law).reshape(people, -1))
    return np.array([found == group for group in np.unique(found)], float)
