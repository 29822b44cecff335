"""Recordings by name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reticent.data.dsa import load_dsa
from reticent.data.extrasensory import load_extrasensory
from reticent.data.motionsense import load_motionsense
from reticent.data.recordings import Recordings
from reticent.data.smoking import load_smoking
from reticent.data.table import load_table
from reticent.data.table_map import read_map, table_map_of
from reticent.data.ut_complex import load_ut_complex
from reticent.errors import InputError

Name = Literal["motionsense", "dsa", "ut-complex", "extrasensory", "smoking", "table"]


@dataclass(frozen=True)
class Source:
    """Which recordings, where they lie, and what each set lets one choose."""

    name: Name
    folder: Path
    unit: str = "right arm"
    secret: str = "gender"
    place: Literal["wrist", "pocket"] = "wrist"
    map: Path | None = None


def load(source: Source) -> Recordings:
    """The recordings, checked; or a sentence that says what is missing and where to get it."""
    match source.name:
        case "motionsense":
            return load_motionsense(source.folder, source.secret)
        case "dsa":
            return load_dsa(source.folder, source.unit)
        case "ut-complex":
            return load_ut_complex(source.folder, source.place)
        case "extrasensory":
            return load_extrasensory(source.folder)
    if source.map is None:
        raise InputError(
            f"{source.name!r} needs --map FILE.toml, which says what the columns are: see `reticent docs recordings`."
        )
    if source.name == "smoking":
        return load_smoking(source.folder, source.map)
    return load_table(source.folder, table_map_of(read_map(source.map), str(source.map)))
