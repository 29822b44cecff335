"""From recordings to a finite model: a codebook per sensor, smoothed counts, and tempered likelihoods."""

from dataclasses import asdict

import numpy as np
from jaxtyping import Float

from reticent.data.readings import Readings, recorded_prior
from reticent.errors import InputError
from reticent.fit.codes import counted, make_codebook
from reticent.fit.prior import check_prior
from reticent.fit.tempering import chosen_tempering, tempered
from reticent.problem.model import Model

CODES = 30


def fit_model(
    recorded: Readings, codes: int = CODES, seed: int = 0, prior: Float[np.ndarray, "S U"] | None = None
) -> Model:
    """The finite model of these people. At least two are needed: the power is chosen by leaving each out once.

    A sensor has `codes` codes, or as many as it has different readings if these are fewer. The prior is the recorded
    one unless another is given.
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
    tempering = chosen_tempering(recorded, codebook, prior, seed)
    counts = counted(recorded, codebook.codes(recorded.values), codebook.sizes)
    channel = tempered(counts, tempering.power, tempering.clip)
    symbols = tuple(f"code {z}" for z in range(max(codebook.sizes)))
    names = recorded.secrets, recorded.useful_values, recorded.sensors, symbols
    fitted = {
        "codebook": codebook.to_json(),
        "tempering": asdict(tempering),
        "reading": asdict(recorded.kind),
        "features": list(recorded.features),
        "interval": recorded.interval,
        "people": [recorded.people[i] for i in people],
        **({} if recorded.changes is None else recorded.changes.stored()),
    }
    return Model(prior, channel, *names, fitted=fitted)
