"""The TOML file that says which files hold a user's own recordings, and which column is what."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.errors import InputError

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Labels:
    """A column of labels: what to call each value, and which values to leave out. Without names values are names."""

    column: str
    names: Mapping[str, str] | None = None
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableMap:
    """Which column is what, and which files.

    Without `person` each file is a person. `time` is a column of numbers in `time_unit` or of time stamps (ISO 8601);
    without it the samples of a file follow each other at `rate` per second. `columns` names the columns of CSV files
    that have no header. `files` is a pattern; a table at hand needs none.
    """

    sensors: Mapping[str, tuple[str, ...]]
    useful: Labels
    secret: Labels
    person: str | None = None
    time: str | None = None
    time_unit: str = "s"
    rate: float | None = None
    columns: tuple[str, ...] | None = None
    files: str = ""


def read_map(path: Path) -> dict[str, Any]:
    """The contents of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read the map {str(path)!r}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The map {str(path)!r} is not TOML: {error}.") from error
    except RecursionError as error:
        raise InputError(f"The map {str(path)!r} is nested too deeply to be read. Write it flatter.") from error


def table_map_of(found: dict[str, Any], name: str) -> TableMap:
    """A map from the contents of a TOML file."""
    expected = {"files", "sensors", "useful", "secret", "person", "time", "time_unit", "rate", "columns"}
    check_fields(found, name, expected, ("files", "sensors", "useful", "secret"))
    return TableMap(
        files=text(found, "files", name),
        sensors=sensor_columns(found["sensors"], name),
        useful=_labels_of(found["useful"], f"{name}: useful"),
        secret=_labels_of(found["secret"], f"{name}: secret"),
        **timing(found, name),
    )


def timing(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Who and when, and the columns of files without header."""
    given: dict[str, Any] = {
        field: text(found, field, name) for field in ("person", "time", "time_unit") if field in found
    }
    if given.get("time_unit", "s") not in SECONDS:
        raise InputError(f"{name}: time_unit is one of {list(SECONDS)}, not {given['time_unit']!r}.")
    rate = found.get("rate")
    if ("time" in given) == (rate is not None):
        raise InputError(f"{name}: give either time, a column, or rate, in samples per second.")
    if rate is not None and not (type(rate) in (int, float) and 0 < rate < math.inf):
        raise InputError(f"{name}: rate must be a number of samples per second above 0, but is {rate!r}.")
    if "columns" in found:
        given["columns"] = texts(found["columns"], f"{name}: columns")
    return {**given, "rate": None if rate is None else float(rate)}


def check_fields(found: dict[str, Any], name: str, expected: set[str], needed: tuple[str, ...]) -> None:
    """Refuse a map with fields that nobody reads, or without those that are needed."""
    if unknown := sorted(set(found) - expected):
        raise InputError(f"{name}: unknown fields {unknown}; it may have {sorted(expected)}.")
    if missing := [field for field in needed if field not in found]:
        raise InputError(f"{name}: lacks {missing}.")


def sensor_columns(found: Any, name: str) -> dict[str, tuple[str, ...]]:
    """Sensor to its columns, one per axis."""
    if not isinstance(found, dict) or not found:
        raise InputError(f"{name}: [sensors] must name at least one sensor and its columns.")
    if dotted := [sensor for sensor in found if "." in sensor or "|" in sensor]:
        raise InputError(f"{name}: a sensor's name may hold neither dot nor bar: {dotted}.")
    sensors = {sensor: texts(columns, f"{name}: sensor {sensor!r}") for sensor, columns in found.items()}
    if twice := [sensor for sensor, columns in sensors.items() if len(set(columns)) < len(columns)]:
        raise InputError(f"{name}: the sensors {twice} name a column twice.")
    return sensors


def text(found: dict[str, Any], field: str, name: str) -> str:
    """A field that must be text."""
    if not isinstance(found[field], str) or not found[field]:
        raise InputError(f"{name}: {field} must be text, but is {found[field]!r}.")
    return found[field]


def texts(found: Any, what: str) -> tuple[str, ...]:
    """A field that must be a list of names."""
    if not isinstance(found, list) or not found or not all(isinstance(name, str) for name in found):
        raise InputError(f"{what} must be a list of names, but is {found!r}.")
    return tuple(found)


def _labels_of(found: Any, what: str) -> Labels:
    if not isinstance(found, dict):
        raise InputError(f"{what} must be a table with column, and labels if they are to be renamed.")
    check_fields(found, what, {"column", "labels", "ignore"}, ("column",))
    names = found.get("labels")
    if names is not None and not (isinstance(names, dict) and all(isinstance(n, str) for n in names.values())):
        raise InputError(f"{what}: labels must map each value to a name, but is {names!r}.")
    ignore = texts(found["ignore"], f"{what}: ignore") if "ignore" in found else ()
    if both := sorted(set(names or {}) & set(ignore)):
        raise InputError(f"{what}: {both} are both in labels and in ignore.")
    return Labels(text(found, "column", what), names, ignore)
