import json
import re

import numpy as np
import pytest

from reticent.errors import InputError
from reticent.problem.model import Model, read_problem
from reticent.problem.synthetic import synthetic, two_binary_sensors

GOOD = {
    "secrets": ["home", "away"],
    "useful": ["sit", "walk"],
    "sensors": ["accelerometer"],
    "channel": [[[[0.1, 0.9], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]]]],
}


def test_defaults_are_uniform_prior_and_numbered_symbols():
    model = Model.from_json(GOOD)
    assert model.symbols == ("0", "1")
    assert np.array_equal(model.prior, np.full((2, 2), 0.25))


def test_json_round_trip_keeps_every_number():
    model = synthetic()
    again = Model.from_json(json.loads(json.dumps(model.to_json())))
    assert np.array_equal(again.channel, model.channel)
    assert again.sensors == model.sensors


def test_rows_are_exactly_normalised_within_tolerance():
    third = [0.333333, 0.333333, 0.333333]
    model = Model.from_json({**GOOD, "channel": [[[third, third], [third, third]]]})
    assert np.allclose(model.channel.sum(-1), 1, rtol=0, atol=1e-15)


def test_tables_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        synthetic().prior[0, 0] = 1.0


def _with(**change):
    return {**GOOD, **change}


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        ([], "JSON object"),
        (_with(colour="red"), "unknown fields ['colour']"),
        ({k: v for k, v in GOOD.items() if k != "sensors"}, "lacks ['sensors']"),
        (_with(sensors=[""]), "unnamed entry at position 0"),
        (_with(sensors=[]), "sensors is empty"),
        (_with(sensors="gyro"), "list of names"),
        (_with(symbols=[]), "symbols is empty"),
        (_with(secrets=["home", "home"]), "name twice: ['home']"),
        (_with(sensors=["a", "b"]), "must have shape (2, 2, 2, 2), but has (1, 2, 2, 2)"),
        (_with(channel=[[[[0.1, 0.9], [0.2, 0.8]], [[0.3, 0.7], [0.4]]]]), "ragged"),
        (_with(channel=[[0.1, 0.9]]), "has 2 levels"),
        (_with(channel=[[[["x", 0.9], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]]]]), "numbers only"),
        (
            _with(channel=[[[[-0.1, 1.1], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]]]]),
            "negative probability at [0, 0, 0, 0]",
        ),
        (_with(channel=[[[[float("nan"), 0.9], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]]]]), "not finite at [0, 0, 0, 0]"),
        (_with(channel=[[[[0.1, 0.8], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]]]]), "sums to 0.9 instead of 1"),
        (_with(prior=[[0.5, 0.5], [0.5, 0.5]]), "The prior sums to 2"),
        (_with(prior=[[0.5, 0.5]]), "prior is nested [secret][useful] and must have shape (2, 2)"),
    ],
)
def test_bad_problems_are_refused_with_a_sentence(problem, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        Model.from_json(problem)


def test_unreadable_files_are_refused_with_a_sentence(tmp_path):
    with pytest.raises(InputError, match="Cannot read"):
        read_problem(tmp_path / "none.json")
    (tmp_path / "torn.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        read_problem(tmp_path / "torn.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(InputError, match="not a text file"):
        read_problem(tmp_path / "binary.json")


def test_a_problem_file_reads_back(tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(two_binary_sensors().to_json()))
    assert read_problem(tmp_path / "p.json").channel[0, 0, 0, 1] == pytest.approx(0.12)
