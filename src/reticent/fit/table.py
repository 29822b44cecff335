"""From a table of labelled samples to a finite model, without a file that describes it."""

from collections.abc import Mapping, Sequence
from typing import Any

from reticent.data.readings import ReadingKind, readings
from reticent.data.table import frame_of, frame_recordings
from reticent.data.table_map import Labels, TableMap
from reticent.errors import InputError
from reticent.fit.model import CODES, Codes, fit_coded
from reticent.fit.panel import PanelKind, fit_panel
from reticent.problem.model import Model


def fit(
    table: Any,
    person: str,
    time: str,
    sensors: Mapping[str, str | Sequence[str]] | Sequence[str],
    useful: str,
    secret: str,
    window: int | float | None = None,
    codes: Codes = CODES,
    seed: int = 0,
    static: bool = False,
    step: float | None = None,
    panel: PanelKind | None = None,
    sharpen: float = 1.0,
) -> Model:
    """Fit a model to recordings: a table with one row per sample.

    Args:
        table: A data frame (Polars, or one that speaks Arrow as pandas 2.2 does), or a CSV or Parquet file.
        person: The column that says of whom a sample is. At least two people are needed.
        time: The column of times: numbers of seconds, points in time, or ISO 8601 text.
        sensors: The columns of each sensor, by its name; or columns that are a sensor each.
        useful: The column of the useful value.
        secret: The column of the secret.
        window: Seconds that are summed up into one reading. 0: every sample is a reading. By default 1, or 0 where a
            second has fewer than two samples.
        codes: Different readings of a sensor that the model tells apart, at most; or "learned": codes on the outputs of
            a classifier for the labels, as few as do best on people left out.
        seed: Seed of the codebook and of the releases that judge the fit.
        static: Take secret and useful value to stay the same during an episode, also where they change in the table.
            By default the model then has a transition.
        step: Seconds of a step of a pair that moves; by default as long as a reading.
        panel: Other providers for whom a bound is to hold: one who knows a single one of these people ("people"), one
            of groups of people who are alike ("clusters"), or other people like these ("bootstrap").
        sharpen: How many times as much as in the model a reading counts for those providers.

    Returns:
        The model. `model.fitted` holds what is known about it: the codebook, who it was fitted to, and the tempering,
        with the loss and the calibration error on people who were left out.

    Example:
        >>> import numpy as np, polars as pl
        >>> rng = np.random.default_rng(0)
        >>> who, sits, smokes = (np.repeat(labels, 50) for labels in np.indices((2, 2, 2)).reshape(3, -1))
        >>> table = pl.DataFrame({"who": who, "t": np.arange(400.0), "sits": sits, "smokes": smokes})
        >>> table = table.with_columns(arm=rng.normal(sits), leg=rng.normal(smokes))
        >>> model = rt.fit(table, "who", "t", ["arm", "leg"], useful="sits", secret="smokes", window=0, codes=3)
        >>> model.sensors, model.channel.shape, model.fitted["people"]
        (('arm', 'leg'), (2, 2, 2, 3), ['0', '1'])
    """
    if window is not None and not window >= 0:
        raise InputError(f"window must be a number of seconds, zero or more, but is {window}.")
    if codes != "learned" and not 2 <= codes <= 1000:
        raise InputError(f"codes must lie between 2 and 1000, but is {codes}.")
    columns = TableMap(_columns(sensors), Labels(useful), Labels(secret), person, time)
    kind = None if window is None else ReadingKind("window", float(window)) if window else ReadingKind("sample")
    recorded = readings(frame_recordings(frame_of(table), columns), kind)
    model, coded = fit_coded(recorded, codes, seed, None, static, step)
    return model if panel is None else fit_panel(model, recorded, coded, panel, sharpen, seed)


def _columns(sensors: Mapping[str, str | Sequence[str]] | Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Each sensor with its columns."""
    if isinstance(sensors, str) or not sensors:
        raise InputError(f"sensors must name columns, as a list or by sensor, but is {sensors!r}.")
    named = sensors if isinstance(sensors, Mapping) else {column: column for column in sensors}
    found = {sensor: (own,) if isinstance(own, str) else tuple(own) for sensor, own in named.items()}
    if odd := [sensor for sensor, own in found.items() if "." in sensor or "|" in sensor or not own]:
        raise InputError(f"The sensor {odd[0]!r} has no column, or a name with a dot or a bar, which is not possible.")
    return found
