"""From recordings to a finite model: a codebook per sensor, smoothed counts, tempered likelihoods, and how the hidden
pair moves."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from reticent.data.readings import Readings, recorded_prior
from reticent.data.trajectories import Trajectories, trajectories
from reticent.errors import InputError
from reticent.fit.codes import counted, make_codebook
from reticent.fit.learned_codes import LearnedCodes
from reticent.fit.prior import check_prior
from reticent.fit.tempering import Tempering, chosen_tempering
from reticent.fit.transition import fit_transition
from reticent.problem.codebook import Codebook
from reticent.problem.model import Model

CODES = 30
# How many learned codes a sensor may have.
LEARNED = (5, 10, 20)
Codes: TypeAlias = int | Literal["learned"]


def fit_model(
    recorded: Readings,
    codes: Codes = CODES,
    seed: int = 0,
    prior: Float[np.ndarray, "S U"] | None = None,
    static: bool = False,
    step: float | None = None,
) -> Model:
    """The finite model of these people. At least two are needed: the power is chosen by leaving each out once.

    A sensor has `codes` codes, or as many as it has different readings if these are fewer; "learned" ones are on the
    outputs of a classifier, and how many is chosen on people left out. The prior is the recorded one unless another is
    given. Where labels change, the pair moves from one step of so many seconds (by default a reading's length) to the
    next, unless the model is to be `static`.
    """
    return fit_coded(recorded, codes, seed, prior, static, step)[0]


def fit_coded(
    recorded: Readings,
    codes: Codes = CODES,
    seed: int = 0,
    prior: Float[np.ndarray, "S U"] | None = None,
    static: bool = False,
    step: float | None = None,
) -> tuple[Model, Int[np.ndarray, "N A"]]:
    """The model, and the codes of the readings that it was counted in."""
    people = np.unique(recorded.person)
    if len(people) < 2:
        raise InputError("A model needs recordings of at least two people: each is left out once to judge the rest.")
    for what, labels in (("secret", recorded.secret), ("useful value", recorded.useful)):
        if len(np.unique(labels)) < 2:
            raise InputError(f"Only one {what} was recorded of these people: there is nothing to tell apart.")
    prior = recorded_prior(recorded) if prior is None else prior
    check_prior(prior, recorded)
    moving = recorded.changes is not None and recorded.changes.some and not static

    def judged(codebook: Codebook, coded: Int[np.ndarray, "N A"]) -> _Judged:
        lives = trajectories(recorded, coded, step) if moving else None
        return _Judged(codebook, coded, lives, chosen_tempering(recorded, coded, codebook.owned, prior, seed, lives))

    codebook, coded, lives, tempering = min(
        (judged(*each) for each in _codings(recorded, codes, seed)), key=lambda each: each.tempering.loss
    )
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
    return Model(prior, channel, *names, fitted, None if lives is None else fit_transition(lives, prior)), coded


class _Judged(NamedTuple):
    """A way of coding, and how well beliefs do with it on people left out."""

    codebook: Codebook
    coded: Int[np.ndarray, "N A"]
    lives: Trajectories | None
    tempering: Tempering


def _codings(recorded: Readings, codes: Codes, seed: int) -> Iterator[tuple[Codebook, Int[np.ndarray, "N A"]]]:
    """Codebooks to choose from, each with the codes of these people's readings."""
    if codes == "learned":
        learned = LearnedCodes(recorded, seed)
        yield from (learned.codebook(count) for count in LEARNED)
    else:
        codebook = make_codebook(recorded, codes, seed)
        yield codebook, codebook.codes(recorded.values)


def _dynamics(recorded: Readings, lives: Trajectories | None) -> dict[str, Any]:
    """The seconds of a step where the pair moves; where the model takes it to stay, how often labels change."""
    if lives is not None:
        return {"step": lives.step}
    return {} if recorded.changes is None else recorded.changes.stored()
