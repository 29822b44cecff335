"""Small devices: numpy only, and the same rules."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from reticent.cli.serve import Serve
from reticent.gateway.runtime import Runtime
from reticent.guard.program import PLAIN
from tests.gateway.parts import coarsened, write_policy

PROGRAM = """
import json, sys
import numpy as np
from reticent.gateway.runtime import Runtime
runtime = Runtime.load(sys.argv[1])
decision = runtime.decide(runtime.first(), np.random.default_rng(0))
print(json.dumps([decision.sensor, decision.kernel.tolist(), "numba" in sys.modules]))
"""


def test_the_interpreted_solver_finds_what_the_compiled_one_finds(tmp_path):
    policy = write_policy(tmp_path / "policy.safetensors", coarsened())
    environment = {**os.environ, PLAIN: "1"}
    words = [sys.executable, "-c", PROGRAM, str(policy)]
    told = subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout
    sensor, kernel, numba = json.loads(told)
    decision = Runtime.load(policy).decide(Runtime.load(policy).first(), np.random.default_rng(0))
    assert not numba
    assert sensor == decision.sensor
    assert np.abs(np.array(kernel) - decision.kernel).max() < 1e-12


@pytest.mark.parametrize("plain", [False, True])
def test_the_option_says_so_to_all_processes(tmp_path, monkeypatch, plain):
    policy = write_policy(tmp_path / "policy.safetensors")
    monkeypatch.setenv(PLAIN, "")
    Serve(policy, plain=plain, check=True).run()
    assert os.environ[PLAIN] == ("1" if plain else "")
