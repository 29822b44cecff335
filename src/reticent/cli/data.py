"""`reticent data` and what commands on recordings share."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from reticent.cli.terminal import stages
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.data.load import Source
    from reticent.data.readings import ReadingKind
    from reticent.data.recordings import Recordings

RecordingsName = Literal["motionsense", "dsa", "ut-complex", "extrasensory", "smoking", "table"]


@dataclass(frozen=True)
class Where:
    """Where the recordings are, and the choices of each set."""

    data: Path | None = None
    """Folder with the published files, zipped or unpacked; by default the one that RETICENT_DATA names."""
    map: Path | None = None
    """TOML file that says what the columns are (table, smoking): see `reticent docs recordings`."""
    secret: Literal["gender", "weight", "height", "age"] = "gender"
    """Which column of the subject table is secret (motionsense)."""
    unit: Literal["torso", "right arm", "left arm", "right leg", "left leg"] = "right arm"
    """Which body unit (dsa)."""
    place: Literal["wrist", "pocket"] = "wrist"
    """Which phone (ut-complex)."""


@dataclass(frozen=True)
class What:
    """What one reading is, and how many codes the finite model has."""

    window: float | None = None
    """Seconds that one reading summarises: mean and log standard deviation of each axis. 0: a reading is one sample.
    By default 1, or 0 where a second has fewer than two samples."""
    codes: int | Literal["learned"] = 30
    """Codes per sensor of the finite model; a sensor with fewer different readings has one for each. `learned`: codes
    on the outputs of a classifier for the labels, as few as do best on people left out (`reticent fit`)."""


def check_codes(codes: int | Literal["learned"]) -> None:
    """Refuse a number of codes that is out of range."""
    if codes != "learned" and not 2 <= codes <= 1000:
        raise InputError(f"--codes must lie between 2 and 1000, but is {codes}.")


def source_of(name: RecordingsName, where: Where) -> "Source":
    """The recordings that the options describe."""
    from reticent.data.load import Source

    folder = where.data or (Path(os.environ["RETICENT_DATA"]) if os.environ.get("RETICENT_DATA") else None)
    if folder is None:
        raise InputError("The folder with the recordings is not given: add --data DIR, or set RETICENT_DATA.")
    return Source(name, folder, where.unit, where.secret, where.place, where.map)


def reading_of(what: What, interval: float = 0.0) -> "ReadingKind":
    """What a reading is, of samples that are so many seconds apart."""
    from reticent.data.windows import ReadingKind, usual_kind

    if what.window is None:
        return usual_kind(interval)
    return ReadingKind("sample") if what.window == 0 else ReadingKind("window", what.window)


@dataclass(frozen=True)
class Data:
    """Describe recordings: people, samples, rates, pairs of labels, how long labels last, irregularities."""

    do: Annotated[Positional[Literal["describe"]], arg(metavar="describe")]
    """What to do with them."""
    name: Annotated[Positional[RecordingsName], arg(metavar="NAME")]
    """motionsense, dsa, ut-complex, extrasensory, smoking (the paper's), or table (your own)."""
    where: Annotated[Where, arg(name="")] = field(default_factory=Where)
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Load and print."""
        from reticent.data.load import load

        source = source_of(self.name, self.where)
        with stages("reading the recordings"):
            recorded = load(source)
        if self.json:
            print(json.dumps(_summary(recorded)))
        else:
            _print_summary(self.name, recorded)


def _summary(recorded: "Recordings") -> dict:
    from reticent.data.dwell import dwells
    from reticent.data.recordings import pairs

    streams = recorded.table["stream"].n_unique()
    return {
        "people": list(recorded.people),
        "samples": len(recorded.table),
        "streams": streams,
        "samples_per_second": 1 / recorded.interval,
        "sensors": {sensor: len(recorded.axes(sensor)) for sensor in recorded.sensors},
        "pairs": pairs(recorded).to_dicts(),
        **({} if recorded.changes is None else recorded.changes.stored()),
        "dwell": [{**each._asdict(), "mean_seconds": each.mean_seconds} for each in dwells(recorded)],
        "notes": list(recorded.notes),
    }


def _print_summary(name: str, recorded: "Recordings") -> None:
    from rich.console import Console
    from rich.table import Table

    from reticent.data.dwell import dwells

    found = _summary(recorded)
    sensors = ", ".join(f"{sensor} ({axes})" for sensor, axes in found["sensors"].items())
    print(
        f"{name}: {len(found['people'])} people, {found['samples']:,} samples in {found['streams']} streams, "
        f"{found['samples_per_second']:.4g} per second"
    )
    print(f"sensors (axes): {sensors}")
    table = Table()
    for heading in ("secret", "useful", "people", "samples", "minutes"):
        table.add_column(heading, justify="left" if heading in ("secret", "useful") else "right")
    for pair in found["pairs"]:
        table.add_row(
            pair["secret"], pair["useful"], str(pair["people"]), f"{pair['samples']:,}", f"{pair['minutes']:.1f}"
        )
    Console().print(table)
    for note in found["notes"]:
        print(f"- {note}")
    if recorded.changes is None or not recorded.changes.some:
        print("- Neither secret nor useful value changes within an unbroken stretch.")
        return
    for label in ("secret", "useful"):
        stays = "; ".join(str(each) for each in dwells(recorded) if each.label == label)
        print(f"- Mean dwell time, {label}: {stays}.")
