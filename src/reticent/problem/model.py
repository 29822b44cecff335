"""The finite release model: who could be there, and what each sensor says about them."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reticent.errors import InputError
from reticent.problem.fitted import check_fitted
from reticent.problem.merging import label_symbols, value_symbols

ROW_SUM_TOLERANCE, ROUNDING = 1e-5, 1e-12


@dataclass(frozen=True, eq=False)
class ReleaseModel:
    """Prior p(s, u), array [S U], and channel q(z | a, s, u), array [A S U Z], with a name for everything.

    Rows may miss one by 1e-5, as numbers typed with a few digits do; they are stored normalised, as 64-bit floats.
    `fitted`, of a model made from recordings, says how: the codebook, the flattening, what a reading is
    (`reticent.problem.fit`).
    """

    prior: np.ndarray
    channel: np.ndarray
    secrets: tuple[str, ...]
    useful: tuple[str, ...]
    sensors: tuple[str, ...]
    symbols: tuple[str, ...]
    fitted: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        for axis in ("secrets", "useful", "sensors", "symbols"):
            object.__setattr__(self, axis, _names(axis, getattr(self, axis)))
        _check_no_merged(self.symbols, self.useful)
        check_fitted(self.fitted)
        pairs = (len(self.secrets), len(self.useful))
        prior = _table("prior", self.prior, pairs, "[secret][useful]")
        shape = (len(self.sensors), *pairs, len(self.symbols))
        channel = _table("channel", self.channel, shape, "[sensor][secret][useful][symbol]")
        _check_sum("The prior", prior.sum())
        for (a, s, u), total in np.ndenumerate(channel.sum(-1)):
            where = f"{self.sensors[a]!r}, secret {self.secrets[s]!r}, useful {self.useful[u]!r}"
            _check_sum(f"The channel row of sensor {where}", total)
        object.__setattr__(self, "prior", _normalised(prior, prior.sum(keepdims=True)))
        object.__setattr__(self, "channel", _normalised(channel, channel.sum(-1, keepdims=True)))

    @property
    def largest_secret_prior(self) -> float:
        return float(self.prior.sum(1).max())

    def to_json(self) -> dict[str, Any]:
        """The problem-file form: what `from_json` reads back to the same model."""
        names = {axis: list(getattr(self, axis)) for axis in ("secrets", "useful", "sensors", "symbols")}
        tables = {"prior": self.prior.tolist(), "channel": self.channel.tolist()}
        return {**names, **tables, **({} if self.fitted is None else {"fitted": self.fitted})}

    @classmethod
    def from_json(cls, problem: Any) -> "ReleaseModel":
        """A model from the problem-file form; `symbols` default to 0, 1, ..., `prior` to uniform."""
        if not isinstance(problem, dict):
            raise InputError("A problem is a JSON object with secrets, useful, sensors and channel.")
        allowed = {"secrets", "useful", "sensors", "symbols", "prior", "channel", "fitted"}
        if unknown := sorted(set(problem) - allowed):
            raise InputError(f"The problem has unknown fields {unknown}; it may have {sorted(allowed)}.")
        if missing := [name for name in ("secrets", "useful", "sensors", "channel") if name not in problem]:
            raise InputError(f"The problem lacks {missing}.")
        secrets, useful = (_names(axis, problem[axis]) for axis in ("secrets", "useful"))
        channel = _array("channel", problem["channel"])
        if channel.ndim != 4:
            raise InputError(f"channel is nested [sensor][secret][useful][symbol], but has {channel.ndim} levels.")
        symbols = problem.get("symbols")
        symbols = [str(z) for z in range(channel.shape[-1])] if symbols is None else symbols
        sensors, symbols = _names("sensors", problem["sensors"]), _names("symbols", symbols)
        uniform = np.full((len(secrets), len(useful)), 1 / (len(secrets) * len(useful)))
        prior = uniform if problem.get("prior") is None else _array("prior", problem["prior"])
        fitted = problem.get("fitted")
        # JSON may hold anything here, a model only what its types allow.
        check_fitted(fitted)
        return cls(prior, channel, secrets, useful, sensors, symbols, fitted)


def read_problem(path: str | Path) -> ReleaseModel:
    """A model from a JSON problem file."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"Cannot read the problem file {str(path)!r}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not a text file, so it is no problem file.") from error
    try:
        problem = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r} is not JSON that can be read: {error}.") from error
    try:
        return ReleaseModel.from_json(problem)
    except RecursionError as error:
        raise InputError(
            f"The problem file {str(path)!r} is nested too deeply to be read. Write it flatter."
        ) from error


def _names(axis: str, names: Any) -> tuple[str, ...]:
    if not isinstance(names, Sequence) or isinstance(names, str) or not all(isinstance(n, str) for n in names):
        raise InputError(f"{axis} must be a list of names, but is {names!r}.")
    if not names:
        raise InputError(f"{axis} is empty: at least one name is needed.")
    if odd := [name for name in names if not _encodable(name)]:
        raise InputError(f"{axis} has the name {odd[0]!r}, which holds half a character and cannot be written down.")
    if "" in names:
        raise InputError(f"{axis} has an unnamed entry at position {list(names).index('')}.")
    if len(set(names)) < len(names):
        raise InputError(f"{axis} has a name twice: {sorted(n for n in set(names) if list(names).count(n) > 1)}.")
    return tuple(names)


def _check_no_merged(symbols: Sequence[str], useful: Sequence[str]) -> None:
    """What is sent in place of readings must not be taken for a reading."""
    merged = {*label_symbols(True, useful), *value_symbols(True, useful), *label_symbols(False, useful)}
    if taken := sorted(merged & set(symbols)):
        raise InputError(
            f"The symbol {taken[0]!r} has the name of what is sent in place of readings that must not be seen, so the "
            "two could not be told apart. Rename it."
        )


def _array(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is ragged: lists at one level differ in length.") from error
    if array.dtype.kind not in "iuf":
        raise InputError(f"{name} must hold numbers only.")
    return array.astype(np.float64)


def _table(name: str, values: Any, shape: tuple[int, ...], legend: str) -> np.ndarray:
    array = _array(name, values)
    if array.shape != shape:
        raise InputError(f"{name} is nested {legend} and must have shape {shape}, but has {array.shape}.")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds a value that is not finite at {_first(~np.isfinite(array))}.")
    if (array < 0).any():
        raise InputError(f"{name} holds a negative probability at {_first(array < 0)}.")
    return array


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _first(mask: np.ndarray) -> list[int]:
    return np.argwhere(mask)[0].tolist()


def _check_sum(what: str, total: float) -> None:
    if not math.isclose(total, 1.0, rel_tol=0, abs_tol=ROW_SUM_TOLERANCE):
        raise InputError(f"{what} sums to {total:.9g} instead of 1.")


def _normalised(array: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The array divided by its sums, for good; what already sums to one keeps every bit, so files read back alike."""
    array = np.where(np.abs(total - 1) <= ROUNDING, array, array / total)
    array.flags.writeable = False
    return array
