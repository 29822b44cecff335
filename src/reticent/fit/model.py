"""From recordings to a finite model: a codebook per sensor, smoothed counts, tempered likelihoods, and how the hidden
pair moves."""

from dataclasses import asdict
from typing import Any

import numpy as np
from jaxtyping import Float

from reticent.data.readings import Readings, recorded_prior
from reticent.data.trajectories import Trajectories, trajectories
from reticent.errors import InputError
from reticent.fit.codes import counted, make_codebook
from reticent.fit.prior import check_prior
from reticent.fit.tempering import chosen_tempering
from reticent.fit.transition import fit_transition
from reticent.problem.model import Model

CODES = 30


def fit_model(
    recorded: Readings,
    codes: int = CODES,
    seed: int = 0,
    prior: Float[np.ndarray, "S U"] | None = None,
    static: bool = False,
    step: float | None = None,
) -> Model:
    """The finite model of these people. At least two are needed: the power is chosen by leaving each out once.

    A sensor has `codes` codes, or as many as it has different readings if these are fewer. The prior is the recorded
    one unless another is given. Where labels change, the pair moves from one step of so many seconds (by default a
    reading's length) to the next, unless the model is to be `static`.
    """
    people = np.unique(recorded.person)
    if len(people) < 2:
        raise InputError("A model needs recordings of at least two people: each is left out once to judge the rest.")
    for what, labels in (("secret", recorded.secret), ("useful value", recorded.useful)):
        if len(np.unique(labels)) < 2:
            raise InputError(f"Only one {what} was recorded of these people: there is nothing to tell apart.")
    prior = recorded_prior(recorded) if prior is None else prior
    check_prior(prior, recorded)
    codebook = make_codebook(recorded, codes, seed)
    coded = codebook.codes(recorded.values)
    moving = recorded.changes is not None and recorded.changes.some and not static
    lives = trajectories(recorded, coded, step) if moving else None
    tempering = chosen_tempering(recorded, coded, codebook.owned, prior, seed, lives)
    channel = tempering.applied(counted(recorded, coded, codebook.owned), prior)
    names = recorded.secrets, recorded.useful_values, recorded.sensors, codebook.symbols
    fitted = {
        "codebook": codebook.to_json(),
        "tempering": asdict(tempering),
        "reading": asdict(recorded.kind),
        "features": list(recorded.features),
        "interval": recorded.interval,
        "people": [recorded.people[i] for i in people],
        **_dynamics(recorded, lives),
    }
    return Model(prior, channel, *names, fitted, None if lives is None else fit_transition(lives, prior))


def _dynamics(recorded: Readings, lives: Trajectories | None) -> dict[str, Any]:
    """The seconds of a step where the pair moves; where the model takes it to stay, how often labels change."""
    if lives is not None:
        return {"step": lives.step}
    return {} if recorded.changes is None else recorded.changes.stored()
