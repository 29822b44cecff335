"""The finite model: the prior of the hidden pairs, what each sensor says under each, and how the pair moves."""

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
from reticent.problem.panel import members, members_to_json

ROW_SUM_TOLERANCE, ROUNDING = 1e-5, 1e-12
FIELDS = ("prior", "channel", "secrets", "useful", "sensors", "symbols", "fitted", "transition", "panel")
PARTS = ("secret", "useful")


@dataclass(frozen=True, eq=False, init=False)
class Model:
    """Who could be there, and what each sensor says about them: prior p(s, u) and channel q(z | a, s, u).

    With a transition T(s', u' | s, u) the hidden pair is a Markov chain; without one it stands still. Tables are nested
    lists, tuples or arrays; rows may miss one by 1e-5, as numbers typed with a few digits do. They are stored as
    normalised 64-bit arrays that cannot be written to.

    Args:
        prior: p(s, u), `[secret][useful]`; by default the same for every pair.
        channel: q(z | a, s, u), `[sensor][secret][useful][symbol]`.
        secrets: Names of the values of the secret S.
        useful: Names of the values of the useful U.
        sensors: Names of the sensors.
        symbols: Names of what a reading can be; by default "0", "1", and so on.
        transition: T(s', u' | s, u), [secret][useful][next secret][next useful]; or, for a secret and a useful value
            that move independently, {"secret": [secret][next], "useful": [useful][next]}. By default nothing moves.
        fitted: Of a model made from recordings, how: the codebook, the tempering, what a reading is (`reticent.fit`).
        panel: Other models that a provider may have of the same values, sensors and symbols: a bound is kept for each
            of them. Models, or objects with another prior, channel or transition; what they lack is as in this model.

    Example:
        >>> model = rt.Model(
        ...     channel=[[[[0.2, 0.8], [0.6, 0.4]], [[0.4, 0.6], [0.9, 0.1]]]],
        ...     secrets=["home", "away"], useful=["heating", "idle"], sensors=["meter"],
        ... )
        >>> model.symbols, model.prior.tolist()
        (('0', '1'), [[0.25, 0.25], [0.25, 0.25]])
    """

    prior: np.ndarray
    channel: np.ndarray
    secrets: tuple[str, ...]
    useful: tuple[str, ...]
    sensors: tuple[str, ...]
    symbols: tuple[str, ...]
    fitted: dict[str, Any] | None
    transition: np.ndarray | None
    panel: tuple["Model", ...]

    def __init__(
        self,
        prior: Any = None,
        channel: Any = None,
        secrets: Any = None,
        useful: Any = None,
        sensors: Any = None,
        symbols: Any = None,
        fitted: Any = None,
        transition: Any = None,
        panel: Any = (),
    ) -> None:
        needed = {"secrets": secrets, "useful": useful, "sensors": sensors, "channel": channel}
        if missing := [name for name, given in needed.items() if given is None]:
            raise InputError(f"The problem lacks {missing}.")
        secrets, useful, sensors = (_names(axis, needed[axis]) for axis in ("secrets", "useful", "sensors"))
        channel = _array("channel", channel)
        if channel.ndim != 4:
            raise InputError(f"channel is nested [sensor][secret][useful][symbol], but has {channel.ndim} levels.")
        symbols = _names("symbols", [str(z) for z in range(channel.shape[-1])] if symbols is None else symbols)
        _check_no_merged(symbols, useful)
        check_fitted(fitted)
        prior = _prior(prior, (len(secrets), len(useful)))
        channel = _channel(channel, sensors, secrets, useful, len(symbols))
        transition = None if transition is None else _transition(transition, secrets, useful)
        values = (prior, channel, secrets, useful, sensors, symbols, fitted, transition)
        for axis, value in zip(FIELDS[:-1], values, strict=True):
            object.__setattr__(self, axis, value)
        object.__setattr__(self, "panel", members(self, panel))

    @property
    def largest_secret_prior(self) -> float:
        return float(self.prior.sum(1).max())

    @property
    def dynamics(self) -> np.ndarray:
        """T(s', u' | s, u), [S U S U]; the identity where nothing moves."""
        return np.eye(self.prior.size).reshape(self.prior.shape * 2) if self.transition is None else self.transition

    @property
    def moves(self) -> bool:
        """Whether the hidden pair may change with time."""
        return not np.array_equal(self.dynamics, np.eye(self.prior.size).reshape(self.prior.shape * 2))

    @property
    def secret_moves(self) -> bool:
        """Whether the secret may change with time."""
        return not np.allclose(np.einsum("susv->su", self.dynamics), 1, rtol=0, atol=ROUNDING)

    def moving(self, transition: Any) -> "Model":
        """The model whose hidden pair moves so; None for one that stands still."""
        return self._with(transition=transition)

    def with_panel(self, panel: "Sequence[Model | dict[str, Any]]") -> "Model":
        """The model with these further providers, and no others."""
        return self._with(panel=panel)

    def _with(self, **changed: Any) -> "Model":
        return Model(**{**{axis: getattr(self, axis) for axis in FIELDS}, **changed})

    def to_json(self) -> dict[str, Any]:
        """The problem-file form: what `from_json` reads back to the same model."""
        names = {axis: list(getattr(self, axis)) for axis in ("secrets", "useful", "sensors", "symbols")}
        tables = {"prior": self.prior.tolist(), "channel": self.channel.tolist()}
        moves = {} if self.transition is None else {"transition": self.transition.tolist()}
        panel = {"panel": members_to_json(self)} if self.panel else {}
        return {**names, **tables, **moves, **({} if self.fitted is None else {"fitted": self.fitted}), **panel}

    @classmethod
    def from_json(cls, problem: Any) -> "Model":
        """A model from the problem-file form, with the defaults that `Model` has."""
        if not isinstance(problem, dict):
            raise InputError("A problem is a JSON object with secrets, useful, sensors and channel.")
        if unknown := sorted(set(problem) - set(FIELDS)):
            raise InputError(f"The problem has unknown fields {unknown}; it may have {sorted(FIELDS)}.")
        return cls(**problem)


def read_problem(path: str | Path) -> Model:
    """Read a model from a JSON problem file.

    Args:
        path: The file; `reticent docs problems` says what it holds.

    Returns:
        The model. What is wrong with the file is an `InputError`.

    Example:
        >>> rt.read_problem("no-such.json")
        Traceback (most recent call last):
        reticent.errors.InputError: Cannot read the problem file 'no-such.json': No such file or directory.
    """
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
        return Model.from_json(problem)
    except RecursionError as error:
        raise InputError(
            f"The problem file {str(path)!r} is nested too deeply to be read. Write it flatter."
        ) from error


def _names(axis: str, names: Any) -> tuple[str, ...]:
    names = names.tolist() if isinstance(names, np.ndarray) else names
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


def _prior(prior: Any, shape: tuple[int, int]) -> np.ndarray:
    """The prior as given, or the same for every pair."""
    table = np.full(shape, 1 / np.prod(shape)) if prior is None else _table("prior", prior, shape, "[secret][useful]")
    _check_sum("The prior", table.sum())
    return _normalised(table, table.sum(keepdims=True))


def _channel(
    channel: np.ndarray, sensors: Sequence[str], secrets: Sequence[str], useful: Sequence[str], symbols: int
) -> np.ndarray:
    shape = (len(sensors), len(secrets), len(useful), symbols)
    table = _table("channel", channel, shape, "[sensor][secret][useful][symbol]")
    for (a, s, u), total in np.ndenumerate(table.sum(-1)):
        where = f"{sensors[a]!r}, secret {secrets[s]!r}, useful {useful[u]!r}"
        _check_sum(f"The channel row of sensor {where}", total)
    return _normalised(table, table.sum(-1, keepdims=True))


def _transition(given: Any, secrets: Sequence[str], useful: Sequence[str]) -> np.ndarray:
    """T [S U S U] as given, or of two parts that move independently."""
    if isinstance(given, dict):
        if set(given) != set(PARTS):
            raise InputError(f"The transition has the parts {sorted(given)}, but as an object it has {list(PARTS)}.")
        own, other = (_moves(part, given[part], names) for part, names in zip(PARTS, (secrets, useful), strict=True))
        given = np.einsum("st,uv->sutv", own, other)
    shape = (len(secrets), len(useful)) * 2
    table = _table("transition", given, shape, "[secret][useful][next secret][next useful]")
    for (s, u), total in np.ndenumerate(table.sum((-2, -1))):
        _check_sum(f"The transition from secret {secrets[s]!r}, useful {useful[u]!r}", total)
    return _normalised(table, table.sum((-2, -1), keepdims=True))


def _moves(part: str, given: Any, names: Sequence[str]) -> np.ndarray:
    table = _table(f"The {part} part of the transition", given, (len(names),) * 2, "[value][next value]")
    for name, total in zip(names, table.sum(1), strict=True):
        _check_sum(f"The {part} part of the transition from {name!r}", total)
    return _normalised(table, table.sum(1, keepdims=True))


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
