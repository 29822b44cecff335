"""Loaders read the published layouts, zipped or unpacked, and say in a sentence what does not fit."""

import tomllib
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from reticent.data.dsa import load_dsa
from reticent.data.motionsense import load_motionsense
from reticent.data.recordings import pairs
from reticent.data.smoking import ACTIVITIES, load_smoking
from reticent.data.table import _seconds, load_table
from reticent.data.table_map import read_map, table_map_of
from reticent.data.ut_complex import load_ut_complex
from reticent.errors import InputError

MOTIONSENSE_COLUMNS = [
    f"{sensor}.{axis}"
    for sensor, axes in {"attitude": ("roll", "pitch", "yaw"), "gravity": "xyz", "rotationRate": "xyz"}.items()
    for axis in axes
] + [f"userAcceleration.{axis}" for axis in "xyz"]


def write_motionsense(folder: Path, rows: int = 100) -> Path:
    rng = np.random.default_rng(0)
    (folder / "data_subjects_info.csv").write_text(
        "\ufeffcode,weight,height,age,gender\n1,102,188,46,1\n2,72,180,28,1\n3,48,161,28,0\n", encoding="utf-8"
    )
    for activity in ("sit_5", "std_6", "wlk_7", "jog_9"):
        for person in (1, 2, 3):
            path = folder / "A_DeviceMotion_data" / activity / f"sub_{person}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            frame = pl.DataFrame(rng.normal(size=(rows, 12)), schema=MOTIONSENSE_COLUMNS)
            frame.with_row_index("").write_csv(path)
    return folder


def write_dsa(folder: Path, activities=("a01", "a02", "a07", "a08", "a09"), people=2, segments=2) -> Path:
    rng = np.random.default_rng(0)
    for activity in activities:
        for person in range(1, people + 1):
            for segment in range(1, segments + 1):
                path = folder / "data" / activity / f"p{person}" / f"s{segment:02d}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                np.savetxt(path, rng.normal(size=(125, 45)), delimiter=",", fmt="%.4f")
    return folder


def zipped(folder: Path, inside: str, name: str) -> Path:
    """The same files as they are downloaded."""
    other = folder.parent / f"{folder.name}-zipped"
    other.mkdir()
    with zipfile.ZipFile(other / name, "w") as archive:
        for path in sorted((folder / inside).rglob("*.*")):
            archive.write(path, path.relative_to(folder))
    return other


def test_motionsense(tmp_path):
    recorded = load_motionsense(write_motionsense(tmp_path))
    assert (recorded.secrets, recorded.useful) == (("female", "male"), ("sitting", "standing", "walking"))
    assert recorded.people == ("1", "2", "3")
    assert recorded.interval == pytest.approx(0.02)
    assert len(recorded.table) == 900
    assert recorded.table["stream"].n_unique() == 9
    assert "3 files of the activity 'jog' are not used." in recorded.notes
    assert any("Only one person" in note and "'female'" in note for note in recorded.notes)
    first = pl.read_csv(tmp_path / "A_DeviceMotion_data" / "sit_5" / "sub_1.csv")
    mine = recorded.table.filter(pl.col("person") == "1", pl.col("useful") == "sitting")
    assert np.allclose(mine["gravity.y"], first["gravity.y"], atol=1e-6)


def test_motionsense_cuts_other_traits_in_two(tmp_path):
    recorded = load_motionsense(write_motionsense(tmp_path), secret="weight")
    assert recorded.secrets == ("weight below 72", "weight 72 or more")
    by_person = dict(recorded.table.select("person", "secret").unique().rows())
    assert by_person == {"1": "weight 72 or more", "2": "weight 72 or more", "3": "weight below 72"}


def test_zip_and_folder_are_read_alike(tmp_path):
    folder = tmp_path / "unpacked"
    folder.mkdir()
    write_motionsense(folder)
    other = zipped(folder, "A_DeviceMotion_data", "A_DeviceMotion_data.zip")
    (other / "data_subjects_info.csv").write_bytes((folder / "data_subjects_info.csv").read_bytes())
    assert load_motionsense(folder).table.equals(load_motionsense(other).table)
    write_dsa(folder)
    other = zipped(folder.rename(tmp_path / "moved"), "data", "daily+and+sports+activities.zip")
    assert load_dsa(tmp_path / "moved").table.equals(load_dsa(other).table)


def test_dsa(tmp_path):
    recorded = load_dsa(write_dsa(tmp_path))
    assert recorded.sensors == ("accelerometer", "gyroscope", "magnetometer", "linear accelerometer")
    # Segments of one recording follow each other without a break.
    assert recorded.table["stream"].n_unique() == 8
    assert len(recorded.table) == 4 * 2 * 250
    assert {(s, u) for s, u, *_ in pairs(recorded).rows()} == {
        (s, u) for s in ("no elevator", "elevator") for u in ("still", "moving")
    }
    raw = np.loadtxt(tmp_path / "data" / "a02" / "p1" / "s01.txt", delimiter=",")
    mine = recorded.table.filter(
        pl.col("person") == "1", pl.col("secret") == "no elevator", pl.col("useful") == "still"
    )
    assert np.allclose(mine["accelerometer.x"][:125], raw[:, 9], atol=1e-6)
    assert np.allclose(mine["magnetometer.z"][:125], raw[:, 17], atol=1e-6)


def test_linear_acceleration_knows_only_the_past(tmp_path):
    write_dsa(tmp_path)
    before = load_dsa(tmp_path).table.filter(pl.col("stream") == 0)["linear accelerometer.x"].to_numpy()
    path = tmp_path / "data" / "a02" / "p1" / "s02.txt"
    np.savetxt(path, np.loadtxt(path, delimiter=",") + 5, delimiter=",", fmt="%.4f")
    after = load_dsa(tmp_path).table.filter(pl.col("stream") == 0)["linear accelerometer.x"].to_numpy()
    assert np.array_equal(before[:125], after[:125])
    assert not np.allclose(before[125:], after[125:])


def test_dsa_units_are_other_columns(tmp_path):
    recorded = load_dsa(write_dsa(tmp_path), unit="torso")
    raw = np.loadtxt(tmp_path / "data" / "a02" / "p1" / "s01.txt", delimiter=",")
    assert np.allclose(recorded.table["accelerometer.x"][:125], raw[:, 0], atol=1e-6)


def write_ut_complex(folder: Path, codes=(11111, 11112, 11114, 11120, 11122, 11123, 11113), rows=200) -> Path:
    rng = np.random.default_rng(0)
    lines = [
        ",".join([str(t), *(f"{x:.3f}" for x in rng.normal(size=12)), str(code)]) for code in codes for t in range(rows)
    ]
    (folder / "smartphoneatwrist.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_ut_complex(tmp_path):
    recorded = load_ut_complex(write_ut_complex(tmp_path))
    assert len(recorded.people) == 10
    assert "200 samples of jogging are not used." in recorded.notes
    assert any("Who was recorded is not published" in note for note in recorded.notes)
    assert any("never run on the published files" in note for note in recorded.notes)
    # Eating, drinking and smoking are kept apart, each in the one posture that it was recorded in.
    there = [(s, u) for s, u, people, *_ in pairs(recorded).rows() if people > 0 and s != "nothing"]
    assert there == [("eating", "sitting"), ("drinking", "sitting"), ("smoking", "standing")]
    assert recorded.secrets == ("nothing", "eating", "drinking", "smoking")
    with pytest.raises(InputError, match="unknown activity codes"):
        load_ut_complex(write_ut_complex(tmp_path, codes=(11111, 99)))


SMOKING_MAP = """
files = "*.csv"
person = "who"
time = "when"
time_unit = "ms"
activity = "doing"
ignore = ["other"]
[sensors]
accelerometer = ["ax", "ay", "az"]
gyroscope = ["gx"]
magnetometer = ["mx"]
"linear accelerometer" = ["lx"]
"""


def write_smoking(folder: Path, rows: int = 20) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    frames = []
    for person in ("p1", "p2"):
        for place, activity in enumerate([*ACTIVITIES, "other"]):
            values = {name: rng.normal(size=rows) for name in ("ax", "ay", "az", "gx", "mx", "lx")}
            when = place * 100_000 + 20.0 * np.arange(rows)
            frames.append(pl.DataFrame({"who": person, "when": when, "doing": activity, **values}))
    pl.concat(frames).write_csv(folder / "watch.csv")
    (folder / "map.toml").write_text(SMOKING_MAP)
    return folder, folder / "map.toml"


def test_smoking_has_eight_of_nine_pairs(tmp_path):
    recorded = load_smoking(*write_smoking(tmp_path))
    assert recorded.sensors == ("accelerometer", "gyroscope", "magnetometer", "linear accelerometer")
    assert [people for *_, people, _, _ in pairs(recorded).rows()] == [2, 2, 2, 2, 2, 2, 2, 2, 0]
    assert recorded.interval == pytest.approx(0.02)
    assert any("'drinking' with useful 'walking'" in note for note in recorded.notes)
    assert "40 samples with secret 'other' are not used." in recorded.notes


def test_the_example_map_of_smoking_reads_what_it_says(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "smoking.toml"
    told = tomllib.loads(example.read_text())
    assert set(told["activities"].values()) == set(ACTIVITIES)
    axes = [axis for own in told["sensors"].values() for axis in own]
    frames = []
    for place, label in enumerate([*told["activities"], *told["ignore"]]):
        when = place * 100_000 + 20.0 * np.arange(20)
        frames.append(
            pl.DataFrame({"participant": 7, "timestamp": when, "activity": label, **dict.fromkeys(axes, 0.5)})
        )
    pl.concat(frames).write_csv(tmp_path / "watch.csv")
    recorded = load_smoking(tmp_path, example)
    assert len(recorded.table) == 8 * 20
    assert [people for *_, people, _, _ in pairs(recorded).rows()].count(1) == 8
    assert any("never run on the published files" in note for note in recorded.notes)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"ax", "ay", "az"', '"ax", "ay", "a_z"', "a_z"),
        ("gyroscope =", "gyro =", "the study needs"),
        ('activity = "doing"\n', "", "lacks"),
        ('ignore = ["other"]\n', "", "'other' (40 samples)"),
        ('time_unit = "ms"', 'time_unit = "hours"', "time_unit is one of"),
        ('time = "when"\n', "", "either time"),
        ("files =", "file =", "unknown fields"),
        ("[sensors]", '[activities]\n"sitting" = "lying"\n[sensors]', "maps the labels"),
        ("[sensors", "[sensors[", "not TOML"),
    ],
)
def test_a_wrong_map_is_refused_with_what_was_found(tmp_path, old, new, sentence):
    folder, path = write_smoking(tmp_path)
    path.write_text(SMOKING_MAP.replace(old, new))
    with pytest.raises(InputError) as refused:
        load_smoking(folder, path)
    assert sentence in str(refused.value)


TABLE_MAP = """
files = "*.{ending}"
person = "subject"
time = "t"
[sensors]
heart = ["bpm"]
arm = ["x", "y"]
[useful]
column = "posture"
labels = {{ "0" = "sits", "1" = "walks" }}
[secret]
column = "smoker"
"""


def write_table(folder: Path, ending: str = "csv", rows: int = 50, **changes) -> Path:
    rng = np.random.default_rng(0)
    frames = [
        pl.DataFrame(
            {
                "subject": person,
                "t": np.arange(rows) + 1000.0 * posture,
                "posture": posture,
                "smoker": "yes" if person % 2 else "no",
                "bpm": rng.normal(size=rows),
                "x": rng.normal(size=rows),
                "y": rng.normal(size=rows),
            }
        )
        for person in range(4)
        for posture in (0, 1)
    ]
    frame = pl.concat(frames).with_columns(**changes)
    if ending == "csv":
        frame.write_csv(folder / "mine.csv")
    else:
        frame.write_parquet(folder / "mine.parquet")
    return folder


def table_map(tmp_path: Path, text: str):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return table_map_of(read_map(path), str(path))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_of_ones_own(tmp_path, ending):
    recorded = load_table(write_table(tmp_path, ending), table_map(tmp_path, TABLE_MAP.format(ending=ending)))
    assert (recorded.secrets, recorded.useful) == (("no", "yes"), ("sits", "walks"))
    assert recorded.axes("arm") == ["arm.x", "arm.y"]
    assert recorded.table["stream"].n_unique() == 8
    assert not recorded.notes


def test_missing_values_pauses_and_repeats_are_told(tmp_path):
    broken = (
        pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise(pl.col("x")).alias("x"),
        pl.when(pl.int_range(pl.len()) >= 40).then(pl.col("t") + 500).otherwise(pl.col("t")).alias("t"),
    )
    write_table(tmp_path, x=broken[0], t=broken[1])
    notes = load_table(tmp_path, table_map(tmp_path, TABLE_MAP.format(ending="csv"))).notes
    assert any("1 of 400 samples lack a value" in note for note in notes)
    assert any("pauses" in note for note in notes)
    write_table(tmp_path, t=pl.lit(1.0) * (pl.int_range(pl.len()) // 2))
    notes = load_table(tmp_path, table_map(tmp_path, TABLE_MAP.format(ending="csv"))).notes
    assert any("repeat a time" in note for note in notes)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('["x", "y"]', '["x", "x"]', "name a column twice"),
        ("heart =", '"he|art" =', "neither dot nor bar"),
        ('time = "t"', "rate = true", "rate must be a number"),
        ('time = "t"', "rate = inf", "rate must be a number"),
        ('files = "*.csv"', 'files = "/tmp/*.csv"', "relative to the data folder"),
        ('"1" = "walks" }', '"1" = "walks" }\nignore = ["1"]', "both in labels and in ignore"),
    ],
)
def test_maps_that_say_two_things_are_refused(tmp_path, old, new, sentence):
    write_table(tmp_path)
    with pytest.raises(InputError) as refused:
        load_table(tmp_path, table_map(tmp_path, TABLE_MAP.format(ending="csv").replace(old, new)))
    assert sentence in str(refused.value)


def test_columns_may_have_dots_people_be_numbers_and_times_be_dates(tmp_path):
    write_table(tmp_path, "parquet")
    frame = pl.read_parquet(tmp_path / "mine.parquet").rename({"x": "arm.x"})
    dates = pl.from_epoch((1000 * pl.col("t")).cast(pl.Int64), "ms")
    frame.with_columns(t=dates, subject=pl.col("subject").cast(pl.Float64)).write_parquet(tmp_path / "mine.parquet")
    text = TABLE_MAP.format(ending="parquet").replace('"x", "y"', '"arm.x", "y"')
    recorded = load_table(tmp_path, table_map(tmp_path, text))
    assert recorded.axes("arm") == ["arm.arm_x", "arm.y"]
    assert recorded.people == ("0", "1", "2", "3")
    assert recorded.interval == pytest.approx(1.0)


@pytest.mark.parametrize(
    "written",
    [
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%d %H:%M:%S%.3f",
        "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%dT%H:%M:%S%.6f+00:00",
        "%Y%m%dT%H%M%S",
    ],
)
def test_times_may_be_iso_time_stamps(tmp_path, written):
    plain = load_table(write_table(tmp_path), table_map(tmp_path, TABLE_MAP.format(ending="csv")))
    stamps = pl.from_epoch((1000 * pl.col("t")).cast(pl.Int64), "ms").dt.strftime(written)
    stamped = load_table(write_table(tmp_path, t=stamps), table_map(tmp_path, TABLE_MAP.format(ending="csv")))
    assert stamped.interval == plain.interval
    assert stamped.table["stream"].to_list() == plain.table["stream"].to_list()
    assert np.allclose(stamped.table["time"], plain.table["time"])


def test_time_stamps_of_other_offsets_are_the_same_moments():
    found = _seconds(pl.Series("t", ["2026-03-29T02:30:00.5+02:00", "2026-03-29T00:30:00.500Z", None]), 1.0, "f.csv")
    assert found[0] == found[1] == 1774744200.5
    assert found[2] is None


def test_what_is_no_time_is_shown(tmp_path):
    noon = pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("noon")).otherwise(pl.col("t").cast(pl.String))
    with pytest.raises(
        InputError, match=r"column 't' of 'mine.csv' holds 'noon'. Times are all numbers, or all ISO 8601"
    ):
        load_table(write_table(tmp_path, t=noon), table_map(tmp_path, TABLE_MAP.format(ending="csv")))


def test_samples_of_nobody_are_told(tmp_path):
    nobody = pl.when(pl.col("subject") > 0).then(pl.col("subject"))
    notes = load_table(write_table(tmp_path, subject=nobody), table_map(tmp_path, TABLE_MAP.format(ending="csv"))).notes
    assert "100 samples do not say of whom they are: left out." in notes


def test_irregular_rates_are_told(tmp_path):
    uneven = pl.col("t") + 0.9 * (pl.int_range(pl.len()) % 2)
    notes = load_table(write_table(tmp_path, t=uneven), table_map(tmp_path, TABLE_MAP.format(ending="csv"))).notes
    assert any("irregular" in note for note in notes)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda folder: (folder / "data" / "a02" / "p1" / "s01.txt").write_text("1,2,3\n"), "3 columns where 45"),
        (lambda folder: _cut(folder / "data" / "a02" / "p1" / "s01.txt", 0.5), "truncated"),
        (
            lambda folder: (folder / "data" / "a07" / "p1" / "s01.txt").write_text("a," * 44 + "b\n"),
            "no table of numbers",
        ),
    ],
)
def test_damaged_files_are_refused(tmp_path, change, sentence):
    write_dsa(tmp_path)
    change(tmp_path)
    with pytest.raises(InputError) as refused:
        load_dsa(tmp_path)
    assert sentence in str(refused.value)


def _cut(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


def test_a_truncated_zip_is_refused(tmp_path):
    folder = tmp_path / "unpacked"
    folder.mkdir()
    other = zipped(write_dsa(folder), "data", "daily+and+sports+activities.zip")
    _cut(other / "daily+and+sports+activities.zip", 0.7)
    with pytest.raises(InputError, match="truncated or no zip"):
        load_dsa(other)


@pytest.mark.parametrize("load", [load_dsa, load_motionsense, load_ut_complex])
def test_what_is_missing_is_named_with_where_to_get_it(tmp_path, load):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="https://"):
            load(folder)
