"""The paper's recordings: a smartwatch while sitting, standing and walking, with smoking and drinking.

Shoaib, Scholten, Havinga, Incel: A hierarchical lazy smoking detection algorithm using smartwatch sensors, IEEE
HealthCom 2016. Their layout is not documented in public, so a TOML map says what the columns and labels are called;
sensors and the eight pairs of labels are the paper's (its table of sensors and activities). examples/smoking.toml is
such a map. Never run on the published files.
"""

from dataclasses import replace
from pathlib import Path

from reticent.data.recordings import UNTRIED, Recordings
from reticent.data.table import load_table
from reticent.data.table_map import (
    Labels,
    TableMap,
    check_fields,
    read_map,
    sensor_columns,
    text,
    texts,
    timing,
)
from reticent.errors import InputError

SENSORS = ("accelerometer", "gyroscope", "magnetometer", "linear accelerometer")
NOTHING, SMOKING, DRINKING = "nothing", "smoking", "drinking"
# Activity to (secret, useful). Nobody drinks while walking: the ninth pair has prior zero.
ACTIVITIES = {
    "sitting": (NOTHING, "sitting"),
    "standing": (NOTHING, "standing"),
    "walking": (NOTHING, "walking"),
    "sitting while smoking": (SMOKING, "sitting"),
    "standing while smoking": (SMOKING, "standing"),
    "walking while smoking": (SMOKING, "walking"),
    "sitting while drinking": (DRINKING, "sitting"),
    "standing while drinking": (DRINKING, "standing"),
}


def load_smoking(folder: Path, map_file: Path) -> Recordings:
    """U is the posture, S what the hand is busy with."""
    recorded = load_table(folder, _map(read_map(map_file), str(map_file)))
    return replace(recorded, notes=(*recorded.notes, UNTRIED))


def _map(found: dict, name: str) -> TableMap:
    fields = {"files", "sensors", "activity", "activities", "ignore", "person", "time", "time_unit", "rate", "columns"}
    check_fields(found, name, fields, ("files", "sensors", "activity"))
    sensors = sensor_columns(found["sensors"], name)
    if set(sensors) != set(SENSORS):
        raise InputError(f"{name}: [sensors] has {sorted(sensors)}, but the study needs {list(SENSORS)}.")
    called = found.get("activities", {activity: activity for activity in ACTIVITIES})
    if not isinstance(called, dict) or not set(called.values()) <= set(ACTIVITIES):
        raise InputError(f"{name}: [activities] maps the labels in the data to {list(ACTIVITIES)}, but has {called!r}.")
    if absent := [activity for activity in ACTIVITIES if activity not in called.values()]:
        raise InputError(f"{name}: [activities] has no label for {absent}.")
    column = text(found, "activity", name)
    ignore = texts(found["ignore"], f"{name}: ignore") if "ignore" in found else ()
    secret, useful = ({label: ACTIVITIES[activity][i] for label, activity in called.items()} for i in (0, 1))
    return TableMap(
        files=text(found, "files", name),
        sensors={sensor: sensors[sensor] for sensor in SENSORS},
        useful=Labels(column, useful, ignore),
        secret=Labels(column, secret, ignore),
        **timing(found, name),
    )
