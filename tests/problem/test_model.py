import json
import re

import numpy as np
import pytest

from reticent.errors import InputError
from reticent.problem.bound import Confidence
from reticent.problem.model import Model, read_problem
from reticent.problem.synthetic import synthetic, two_binary_sensors
from reticent.problem.task import Task

GOOD = {
    "secrets": ["home", "away"],
    "useful": ["sit", "walk"],
    "sensors": ["accelerometer"],
    "channel": [[[[0.1, 0.9], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]]]],
}


STAYS = [[1.0, 0.0], [0.0, 1.0]]


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
        (_with(transition=[[0.5, 0.5]]), "transition is nested [secret][useful][next secret][next useful] and must"),
        (_with(transition={"secret": STAYS}), "has the parts ['secret'], but as an object it has ['secret', 'useful']"),
        (
            _with(transition={"secret": STAYS, "useful": [[0.5, 0.5]]}),
            "The useful part of the transition is nested [value][next value] and must have shape (2, 2)",
        ),
        (
            _with(transition={"secret": [[0.9, 0.2], [0, 1]], "useful": STAYS}),
            "The secret part of the transition from 'home' sums to 1.1 instead of 1.",
        ),
        (
            _with(transition=np.full((2, 2, 2, 2), 0.3).tolist()),
            "The transition from secret 'home', useful 'sit' sums to 1.2 instead of 1.",
        ),
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


def test_parts_that_move_independently_multiply():
    secret, useful = [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.25, 0.75]]
    model = Model.from_json(_with(transition={"secret": secret, "useful": useful}))
    # From (home, walk) to (away, sit): .1 times .25.
    assert model.dynamics[0, 1, 1, 0] == pytest.approx(0.025)
    assert np.allclose(model.dynamics.sum((2, 3)), 1, rtol=0, atol=1e-15)
    again = Model.from_json(json.loads(json.dumps(model.to_json())))
    assert np.array_equal(again.dynamics, model.dynamics)


def test_what_moves():
    still = Model.from_json(GOOD)
    assert not still.moves
    assert "transition" not in still.to_json()
    # Sessions: the secret stays, the useful value is drawn anew.
    sessions = still.moving({"secret": STAYS, "useful": [[0.3, 0.7], [0.3, 0.7]]})
    assert sessions.moves
    assert not sessions.secret_moves
    assert still.moving({"secret": [[0.9, 0.1], [0, 1]], "useful": STAYS}).secret_moves
    assert not still.moving({"secret": STAYS, "useful": STAYS}).moves
    assert not sessions.moving(None).moves


def test_a_task_with_a_stop_refuses_a_model_that_moves():
    moving = Model.from_json(GOOD).moving({"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": STAYS})
    with pytest.raises(InputError, match="its hidden pair moves"):
        Task(moving, Confidence(0.8))
