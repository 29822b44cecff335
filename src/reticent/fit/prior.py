"""The prior of a fitted model: as recorded, uniform over what was recorded, or from a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from reticent.data.readings import Readings, recorded_prior, uniform_prior
from reticent.errors import InputError

RECORDED, UNIFORM = "recorded", "uniform"


def prior_of(choice: str, recorded: Readings) -> Float[np.ndarray, "S U"]:
    """`recorded`, `uniform`, or the path of a JSON file with {secret: {useful value: probability}}."""
    if choice == RECORDED:
        return recorded_prior(recorded)
    if choice == UNIFORM:
        return uniform_prior(recorded)
    return _from_file(Path(choice), recorded)


def prior_spread(recorded: Readings) -> dict[str, list[float]]:
    """Of each secret, the least and the largest share of their time that people were recorded with it."""
    shares = np.array([recorded_prior(recorded.of([person])).sum(1) for person in np.unique(recorded.person).tolist()])
    return {name: [float(own.min()), float(own.max())] for name, own in zip(recorded.secrets, shares.T, strict=True)}


def check_prior(prior: Float[np.ndarray, "S U"], recorded: Readings) -> None:
    """Refuse a prior that is positive where nothing was recorded, or zero where something was."""
    seen = uniform_prior(recorded) > 0
    for wrong, sentence in (
        (seen & (prior <= 0), "has probability zero in the prior, but was recorded: leave such samples out"),
        (~seen & (prior > 0), "was never recorded, so the model cannot know its readings: set its prior to 0"),
    ):
        for s, u in np.argwhere(wrong)[:1]:
            raise InputError(f"Secret {recorded.secrets[s]!r} with {recorded.useful_values[u]!r} {sentence}.")


def _from_file(path: Path, recorded: Readings) -> Float[np.ndarray, "S U"]:
    found = _read(path)
    names = f"secrets {list(recorded.secrets)} and useful values {list(recorded.useful_values)}"
    unknown = set(found) - set(recorded.secrets) | {u for row in found.values() for u in row} - set(
        recorded.useful_values
    )
    if unknown:
        raise InputError(f"The prior {str(path)!r} names {sorted(unknown)}; the recordings have {names}.")
    prior = np.array([[found.get(s, {}).get(u, 0.0) for u in recorded.useful_values] for s in recorded.secrets])
    check_prior(prior, recorded)
    return prior


def _read(path: Path) -> dict[str, dict[str, float]]:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"--prior is `recorded`, `uniform` or a file, but {str(path)!r} cannot be read: {error.strerror or error}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"The prior {str(path)!r} is not JSON: {error}.") from error
    rows = found.values() if isinstance(found, dict) else [None]
    if not all(isinstance(row, dict) and all(type(p) in (int, float) for p in row.values()) for row in rows):
        raise InputError(f"The prior {str(path)!r} must be {{secret: {{useful value: probability}}}}.")
    return {secret: {useful: float(p) for useful, p in row.items()} for secret, row in found.items()}
