"""`solve` and `train` name useful values that no sensor tells apart."""

import json

import pytest

from reticent.problem.synthetic import tells_nothing, two_binary_sensors
from tests.commands import commands


@pytest.mark.parametrize(("model", "named"), [(tells_nothing, True), (two_binary_sensors, False)])
@pytest.mark.parametrize("words", [("solve",), pytest.param(("train", "--steps", 1, "-o"), marks=pytest.mark.slow)])
def test_the_pair_is_named_on_stderr_only(model, named, words, tmp_path, monkeypatch, capsys):
    problem = tmp_path / "problem.json"
    problem.write_text(json.dumps(model().to_json()))
    command, *options = words
    options += [tmp_path / "policy.safetensors"] if command == "train" else []
    run = commands(monkeypatch, capsys)
    code, out, err = run(command, problem, "--confidence", 0.8, *options, "--json")
    assert code == 0
    assert ("'u0' and 'u1' apart under every secret" in err) == named
    # Results stay one JSON object.
    json.loads(out)
