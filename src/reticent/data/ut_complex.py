"""UT-Complex: a phone at the wrist or in the pocket during thirteen activities (Shoaib et al., Sensors 16(4), 2016).

Written from its published description; never run on the published files.
"""

from pathlib import Path
from typing import Literal

import polars as pl

from reticent.data.archive import find_archive
from reticent.data.csv import read_csv
from reticent.data.recordings import UNTRIED, Recordings, recordings
from reticent.errors import InputError

WHERE_FROM = (
    "Get the UT-Complex data (smartphoneatwrist.csv, smartphoneatpocket.csv) from "
    "https://www.utwente.nl/en/eemcs/ps/research/dataset/ and put them into the data folder."
)
RATE = 50
PARTS = 10
SENSORS = ("accelerometer", "linear accelerometer", "gyroscope", "magnetometer")
NOTHING, EATING, DRINKING, SMOKING = "nothing", "eating", "drinking", "smoking"
# Activity code to (secret, useful). Here everybody sits to eat and to drink, and stands to smoke.
LABELS = {
    11111: (NOTHING, "walking"),
    11116: (NOTHING, "walking"),
    11117: (NOTHING, "walking"),
    11112: (NOTHING, "standing"),
    11121: (NOTHING, "standing"),
    11122: (SMOKING, "standing"),
    11114: (NOTHING, "sitting"),
    11118: (NOTHING, "sitting"),
    11119: (NOTHING, "sitting"),
    11120: (DRINKING, "sitting"),
    11123: (EATING, "sitting"),
}
UNUSED = {11113: "jogging", 11115: "biking"}


def load_ut_complex(folder: Path, place: Literal["wrist", "pocket"] = "wrist") -> Recordings:
    """U is the posture, S what the hand is busy with, as far as it goes to the mouth.

    The files do not say who was recorded when. One person after the other did each activity for about the same time,
    so ten equal parts of each activity stand for people: parts of one number need not be of one person.
    """
    name = f"smartphoneat{place}.csv"
    archive = find_archive(folder, ("ut-data-complex.zip", "ut-data-complex", "."), WHERE_FROM)
    inside = [path for path in archive.names if path.rpartition("/")[2] == name]
    if not inside:
        raise InputError(f"There is no {name!r} in {str(archive.path)!r}. {WHERE_FROM}")
    axes = [f"{sensor}.{axis}" for sensor in SENSORS for axis in "xyz"]
    [(_, content)] = archive.read(inside[:1])
    samples = read_csv(content, name, ["timestamp", *axes, "activity"], header=False)
    samples = samples.with_columns(pl.col("activity").cast(pl.Int64))
    if unknown := sorted(set(samples["activity"].drop_nulls()) - set(LABELS) - set(UNUSED)):
        raise InputError(f"{name!r} holds unknown activity codes {unknown}; known are {sorted({*LABELS, *UNUSED})}.")
    used = samples.filter(pl.col("activity").is_in(list(LABELS)))
    counts = dict(samples["activity"].drop_nulls().value_counts().rows())
    notes = [f"{counts[code]:,} samples of {what} are not used." for code, what in UNUSED.items() if code in counts]
    notes.append(UNTRIED)
    notes.append(f"Who was recorded is not published: {PARTS} equal parts of each activity stand for people.")
    place_in_activity = pl.int_range(pl.len()).over("activity")
    part = place_in_activity * PARTS // pl.len().over("activity")
    used = used.with_columns(
        pl.col("activity").cast(pl.String).alias("session"),
        pl.format("part {}", part + 1).alias("person"),
        (place_in_activity / RATE).alias("time"),
        *(
            pl.col("activity").replace_strict({code: pair[i] for code, pair in LABELS.items()}).alias(label)
            for i, label in enumerate(("secret", "useful"))
        ),
    )
    secrets = (NOTHING, EATING, DRINKING, SMOKING)
    return recordings(used, SENSORS, secrets, ("sitting", "standing", "walking"), tuple(notes))
