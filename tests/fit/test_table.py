"""A model from a data frame or a file, as from a map."""

import json

import numpy as np
import polars as pl
import pytest

import reticent as rt
from reticent.data.load import Source, load
from reticent.data.readings import ReadingKind, readings
from reticent.fit.model import fit_model

COLUMNS = {"person": "who", "time": "t", "useful": "sits", "secret": "smokes", "window": 0, "codes": 4}
SENSORS = {"arm": ["x"], "leg": ["y"]}


def table():
    rng = np.random.default_rng(0)
    who, sits, smokes = (np.repeat(labels, 60) for labels in np.indices((4, 2, 2)).reshape(3, -1))
    frame = pl.DataFrame({"who": who, "t": np.arange(960.0), "sits": sits, "smokes": smokes})
    return frame.with_columns(x=rng.normal(sits), y=rng.normal(smokes))


class Arrow:
    """A table that speaks Arrow, as pandas does."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


def test_a_frame_and_a_file_give_the_model_that_a_map_gives(tmp_path):
    frame = table()
    frame.write_csv(tmp_path / "mine.csv")
    frame.write_parquet(tmp_path / "mine.parquet")
    (tmp_path / "mine.toml").write_text(
        'files = "mine.csv"\nperson = "who"\ntime = "t"\n[sensors]\narm = ["x"]\nleg = ["y"]\n'
        '[useful]\ncolumn = "sits"\n[secret]\ncolumn = "smokes"\n'
    )
    recorded = load(Source("table", tmp_path, map=tmp_path / "mine.toml"))
    mapped = fit_model(readings(recorded, ReadingKind("sample")), 4)
    for given in (frame, frame.lazy(), Arrow(frame), tmp_path / "mine.csv", str(tmp_path / "mine.parquet")):
        model = rt.fit(given, sensors=SENSORS, **COLUMNS)
        assert np.array_equal(model.channel, mapped.channel)
        assert json.dumps(model.to_json()) == json.dumps(mapped.to_json())
    assert mapped.fitted is not None
    assert mapped.fitted["tempering"]["calibration_error"] < 0.1


@pytest.mark.parametrize(
    ("given", "change", "sentence"),
    [
        ("nothing.csv", {}, "There is no file 'nothing.csv'"),
        ([1, 2], {}, "but are a list"),
        (table(), {"sensors": "x"}, "sensors must name columns"),
        (table(), {"sensors": ["z"]}, r"There are no columns \['z'\]"),
        (table(), {"sensors": {"a.b": "x"}}, "a name with a dot or a bar"),
        (table(), {"codes": 1}, "codes must lie between 2 and 1000"),
        (table(), {"window": -1.0}, "zero or more, but is -1"),
        (table().with_columns(who=1), {}, "at least two people"),
    ],
)
def test_what_cannot_be_fitted_is_refused(given, change, sentence):
    with pytest.raises(rt.InputError, match=sentence):
        rt.fit(given, **{"sensors": SENSORS, **COLUMNS, **change})
