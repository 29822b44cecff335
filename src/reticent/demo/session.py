"""Sessions to be replayed step by step: what was measured, what was sent, and what the provider believes."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from reticent.audit.traces import Traces
from reticent.belief.bayes import update
from reticent.problem.model import Model

Steps = list[dict[str, Any]]


def sessions(
    model: Model, codes: Int[np.ndarray, "N A"], rows: Int[np.ndarray, " E"], traces: Traces, people: tuple[str, ...]
) -> list[dict[str, Any]]:
    """For each pair of labels, the session whose readings, sent as they are, would have told most about the secret."""
    found = []
    for secret, useful in np.ndindex(model.prior.shape):
        own = np.flatnonzero((traces.secret == secret) & (traces.useful == useful))
        told = {place: _steps(model, codes[rows[place] :], traces, place) for place in own.tolist()}
        best = max(told, key=lambda place: _held_back(told[place]))
        names = {"secret": model.secrets[secret], "useful": model.useful[useful]}
        found.append({**names, "person": people[traces.person[best]], "steps": told[best]})
    return found


def _held_back(steps: Steps) -> float:
    """How much surer of the secret the readings would have made the provider."""
    return max(steps[-1]["open"]["secret"]) - max(steps[-1]["guarded"]["secret"])


def _steps(model: Model, said: Int[np.ndarray, "T A"], traces: Traces, place: int) -> Steps:
    """One entry per release, after one for the prior. `open` is the belief had the reading been sent as it is."""
    assert traces.symbol is not None
    assert traces.likelihood is not None
    guarded = unprotected = model.prior
    steps: Steps = [{"sensor": None, **_beliefs(guarded, unprotected)}]
    for step in range(int(traces.length[place])):
        sensor, symbol = int(traces.sensor[place, step]), int(traces.symbol[place, step])
        code = int(said[step, sensor])
        guarded, _ = update(guarded, traces.likelihood[place, step])
        unprotected, _ = update(unprotected, model.channel[sensor, :, :, code])
        told = {"sensor": model.sensors[sensor], "measured": model.symbols[code], "sent": traces.names.symbols[symbol]}
        steps.append({**told, **_beliefs(guarded, unprotected)})
    return steps


def _beliefs(guarded: Float[np.ndarray, "S U"], unprotected: Float[np.ndarray, "S U"]) -> dict[str, Any]:
    return {
        name: {"secret": belief.sum(1).tolist(), "useful": belief.sum(0).tolist()}
        for name, belief in (("guarded", guarded), ("open", unprotected))
    }
