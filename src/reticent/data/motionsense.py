"""MotionSense: a phone in the front pocket while sitting, standing and walking (Malekzadeh et al., IoTDI 2019)."""

import re
from collections import Counter
from pathlib import Path, PurePosixPath

import polars as pl

from reticent.data.archive import find_archive
from reticent.data.csv import read_csv
from reticent.data.recordings import Recordings, recordings
from reticent.errors import InputError

WHERE_FROM = (
    "Get A_DeviceMotion_data.zip and data_subjects_info.csv of MotionSense from "
    "https://github.com/mmalekzadeh/motion-sense/tree/master/data and put both into the data folder."
)
RATE = 50
USEFUL = {"sit": "sitting", "std": "standing", "wlk": "walking"}
SENSORS = {
    "attitude": ("roll", "pitch", "yaw"),
    "gravity": ("x", "y", "z"),
    "rotationRate": ("x", "y", "z"),
    "userAcceleration": ("x", "y", "z"),
}
SUBJECTS = "data_subjects_info.csv"
TRAITS = ("weight", "height", "age", "gender")


def load_motionsense(folder: Path, secret: str = "gender") -> Recordings:
    """U is the posture; S a column of the subject table: the gender, or weight, height or age cut at the median."""
    archive = find_archive(folder, ("A_DeviceMotion_data.zip", "A_DeviceMotion_data"), WHERE_FROM)
    traits, secrets = _traits(folder, secret)
    files = [name for name in archive.names if re.search(r"sub_\d+\.csv$", name)]
    used = [name for name in files if _activity(name) in USEFUL]
    if not used:
        raise InputError(f"{str(archive.path)!r} holds no <activity>_<trial>/sub_<k>.csv of {list(USEFUL)}.")
    others = Counter(activity for name in files if (activity := _activity(name)) not in USEFUL)
    notes = [f"{count} files of the activity {name!r} are not used." for name, count in sorted(others.items())]
    samples = pl.concat([_session(name, content, traits) for name, content in archive.read(used)])
    return recordings(samples, tuple(SENSORS), secrets, tuple(USEFUL.values()), tuple(notes))


def _activity(name: str) -> str:
    return PurePosixPath(name).parent.name.partition("_")[0]


def _session(name: str, content: bytes, traits: dict[str, str]) -> pl.DataFrame:
    path = PurePosixPath(name)
    person = path.stem.removeprefix("sub_")
    if person not in traits:
        raise InputError(f"{name!r} is of subject {person}, who is not in {SUBJECTS!r}.")
    columns = [f"{sensor}.{axis}" for sensor, axes in SENSORS.items() for axis in axes]
    samples = read_csv(content, name, columns, header=True)
    return samples.with_columns(
        pl.lit(path.parent.name).alias("session"),
        pl.lit(person).alias("person"),
        (pl.int_range(pl.len()) / RATE).alias("time"),
        pl.lit(traits[person]).alias("secret"),
        pl.lit(USEFUL[_activity(name)]).alias("useful"),
    )


def _traits(folder: Path, secret: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The secret of each subject, and the names of the secrets."""
    if secret not in TRAITS:
        raise InputError(f"The secret of MotionSense is one of {list(TRAITS)}, not {secret!r}.")
    path = folder / SUBJECTS
    if not path.is_file():
        raise InputError(f"There is no {SUBJECTS!r} in {str(folder)!r}. {WHERE_FROM}")
    # The published table starts with a byte order mark, which is no part of the first column's name.
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    table = read_csv(content, SUBJECTS, ["code", *TRAITS], header=True)
    codes = [str(int(code)) for code in table["code"]]
    if secret == "gender":
        names = ("female", "male")
        above = table["gender"] == 1
    else:
        median = float(table[secret].median())  # type: ignore[arg-type]
        names = (f"{secret} below {median:g}", f"{secret} {median:g} or more")
        above = table[secret] >= median
    return {code: names[int(up)] for code, up in zip(codes, above, strict=True)}, names
