"""What a model that was made from recordings remembers of them, checked when the model is built."""

import math
from typing import Any

from reticent.data.windows import ReadingKind
from reticent.errors import InputError

AGAIN = "Make the problem file anew with `reticent fit`, or leave `fitted` out."


def check_fitted(fitted: Any) -> None:
    """Refuse what `reticent fit` does not write; it may be None. Whether numbers fit, `Codebook.of` says."""
    if fitted is None:
        return
    if not isinstance(fitted, dict) or not isinstance(fitted.get("codebook"), dict):
        raise InputError(f"`fitted` lacks its codebook: {_shown(fitted)}. {AGAIN}")
    features, interval, people = (fitted.get(name) for name in ("features", "interval", "people"))
    if features is not None and not _list_of(features, int):
        raise InputError(f"`fitted` has features that are no list of whole numbers: {_shown(features)}. {AGAIN}")
    if interval is not None and not (type(interval) in (int, float) and 0 < interval < math.inf):
        raise InputError(f"`fitted` has an interval that is no number of seconds: {_shown(interval)}. {AGAIN}")
    if people is not None and not _list_of(people, str):
        raise InputError(f"`fitted` has people who are no list of names: {_shown(people)}. {AGAIN}")
    _check_reading(fitted.get("reading", {}))


def _check_reading(reading: Any) -> None:
    wrong = InputError(f"`fitted` has a reading that is none: {_shown(reading)}. {AGAIN}")
    if not isinstance(reading, dict) or reading.get("kind", "window") not in ("window", "sample"):
        raise wrong
    try:
        ReadingKind(**reading)
    except (TypeError, InputError) as error:
        raise wrong from error


def _list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list | tuple) and all(type(value) is kind for value in values)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:
        return "it is nested too deeply"
    return text if len(text) <= 80 else f"{text[:80]}..."
