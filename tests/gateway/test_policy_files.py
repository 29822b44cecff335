"""Policy files: which are served, which are refused, and how light a gateway with one is."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from reticent.errors import InputError
from reticent.gateway.decisions import Standing
from reticent.gateway.runtime import Runtime
from reticent.policy.store import PolicyFile
from reticent.problem.bound import Confidence, ExpectedInformation, Information, Unbounded
from reticent.problem.enforcement import AnswerOnly, PaperCost
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task
from tests.gateway.cases import COARSENED, MASKED, RNG, runtime_of
from tests.untrained import actor, lookahead


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (
            Task(synthetic(), Confidence(0.8)),
            "by 'penalty': .* may be crossed, .* only what is never crossed. .*--enforce coarsen",
        ),
        (Task(synthetic(), Confidence(0.8), enforcement=PaperCost()), "by 'paper'"),
        (Task(synthetic(), Information(1.0), enforcement=PaperCost()), "by 'paper': .*--enforce mask"),
        (Task(synthetic(), ExpectedInformation(0.5)), "kept on average over episodes, .* only what is never crossed"),
        (Task(synthetic(), Confidence(0.8), enforcement=AnswerOnly()), "sends an answer in place of readings"),
        (Task(synthetic(), Unbounded()), "has no bound"),
    ],
)
def test_policies_whose_bound_could_be_crossed_are_refused(task, sentence, tmp_path):
    path = tmp_path / "policy.safetensors"
    actor(task).save(path)
    with pytest.raises(InputError, match=sentence):
        Runtime.load(path)
    if "has no bound" in sentence:
        runtime = Runtime.load(path, allow_unbounded=True)
        assert runtime.decide(Standing(np.full((3, 3), 1 / 9), 50.0, 0, 0), RNG) is not None
        assert runtime.budget_left(Standing(np.diag([0.9, 0.1, 0.0]), 50.0, 0, 9)) == 1.0
    else:
        with pytest.raises(InputError, match=sentence):
            Runtime.load(path, allow_unbounded=True)


def test_files_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "policy.safetensors"
    other = replace(lookahead(MASKED), kind="oracle")
    other.save(path)
    with pytest.raises(InputError, match="kind 'oracle'"):
        Runtime.load(path)
    with pytest.raises(InputError, match="do not describe a network"):
        runtime_of(replace(actor(MASKED), settings={"inputs": "tea leaves"}))
    with pytest.raises(InputError, match="holds arrays"):
        runtime_of(replace(actor(MASKED, "belief"), settings=actor(MASKED).settings))
    with pytest.raises(InputError, match="asks for value kernels"):
        runtime_of(lookahead(MASKED, "value"))
    broken = actor(MASKED)
    broken.arrays["layers.0.bias"][0] = np.nan
    with pytest.raises(InputError, match="not finite"):
        runtime_of(broken)


def test_the_digest_is_that_of_the_file_that_was_loaded(tmp_path, monkeypatch):
    path = tmp_path / "policy.safetensors"
    actor(MASKED).save(path)
    load = PolicyFile.load

    def swapped(path):
        file = load(path)
        actor(MASKED, seed=1).save(path)
        return file

    monkeypatch.setattr(PolicyFile, "load", swapped)
    with pytest.raises(InputError, match="replaced while it was read"):
        Runtime.load(path)


LIGHT = """
import sys, hashlib, numpy as np
from reticent.gateway.runtime import Runtime
runtime, rng = Runtime.load(sys.argv[1]), np.random.default_rng(0)
standing = runtime.first()
for _ in range(5):
    decision = runtime.decide(standing, rng)
    if decision.sensor is not None:
        standing = runtime.release(standing, decision, 3, rng)[1]
heavy = {name.partition(".")[0] for name in sys.modules} & {"jax", "scipy", "polars", "sklearn", "equinox", "optax"}
kilobytes = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")]
digest = hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest()
print(standing.step, sorted(heavy), digest == runtime.digest, *kilobytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
@pytest.mark.parametrize(
    ("file", "numba", "most"),
    [
        (actor(MASKED, stops=-1e3, width=128), True, 60_000),
        (lookahead(COARSENED, "value", width=64), False, 60_000),
        # numba brings a compiler, and itself imports scipy where that is installed.
        (lookahead(COARSENED, "value", width=64), True, 200_000),
    ],
)
def test_a_gateway_is_light(file, numba, most, tmp_path):
    file.save(tmp_path / "policy.safetensors")
    without = "" if numba else 'import sys; sys.modules["numba"] = None'
    words = [sys.executable, "-c", without + LIGHT, str(tmp_path / "policy.safetensors")]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert int(printed[0]) > 0
    assert printed[1] == ("['scipy']" if most > 60_000 else "[]")
    assert printed[2] == "True"
    assert int(printed[3]) < most
