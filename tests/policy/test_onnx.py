"""The exported graph gives the actor's logits and choices, in another runtime."""

import json
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest

from reticent.cli.export import Export
from reticent.errors import InputError
from reticent.gateway.decisions import Standing
from reticent.gateway.runtime import Runtime
from reticent.policy.actor import Actor, Features, masked_logits
from reticent.policy.onnx import onnx_model
from reticent.policy.saved import policy_of
from reticent.problem.bound import Confidence, ExpectedInformation, Information
from reticent.problem.enforcement import Mask, PaperCost, named_enforcement
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task
from reticent.process.process import PublicState
from tests.problems import random_model
from tests.untrained import actor, lookahead

MASKED = Task(synthetic(), Information(1.0))
STATES = 400


def session_of(file):
    written = onnx_model(file, "0" * 64)
    onnx.checker.check_model(onnx.load_model_from_string(written), full_check=True)
    return onnxruntime.InferenceSession(written, providers=["CPUExecutionProvider"])


def states(task, seed=0):
    """Beliefs, information spent and allowed sensors, drawn anyhow; some beliefs have zeros."""
    rng = np.random.default_rng(seed)
    shape = task.model.prior.shape
    beliefs = rng.dirichlet(np.full(task.model.prior.size, 0.3), STATES)
    beliefs[:20, 0] = 0
    beliefs = (beliefs / beliefs.sum(1, keepdims=True)).reshape(-1, *shape)
    return beliefs, rng.uniform(0, 1, STATES), rng.random((STATES, len(task.model.sensors))) < 0.7


def run(session, beliefs, spent, allowed, **more):
    feeds = {"belief": beliefs, "spent_bits": spent, **more}
    feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
    logits, action = session.run(["logits", "action"], {**feeds, "allowed": allowed})
    return np.asarray(logits), np.asarray(action)


def check(logits, action, wanted):
    """32-bit rounding of sums, 1e-5 of the largest logit; the same choice unless the two best are as near as that."""
    assert np.array_equal(np.isinf(logits), np.isinf(wanted))
    finite = np.isfinite(wanted)
    room = 1e-5 * max(1.0, np.abs(wanted[finite]).max())
    assert np.abs(logits[finite] - wanted[finite]).max() < room
    second, best = np.sort(wanted, axis=1)[:, -2:].T
    clear = best - second > 2 * room
    assert clear.mean() > 0.99
    assert np.array_equal(action[clear], wanted.argmax(1)[clear])


@pytest.mark.parametrize(
    ("task", "inputs"),
    [
        (MASKED, "belief"),
        (MASKED, "described"),
        (MASKED, "rich"),
        (Task(random_model(2, 3, 2, 4, 6, sparse=True), Confidence(0.9)), "rich"),
        (Task(random_model(1, 2, 3, 2, 4), Confidence(0.9), Objective(0.5, 20.0), Mask()), "rich"),
        (Task(random_model(1, 2, 3, 2, 4), Confidence(0.9), enforcement=PaperCost()), "described"),
    ],
)
def test_the_graph_decides_as_the_actor(task, inputs):
    file = actor(task, inputs, seed=3)
    _, policy = policy_of(file)
    assert isinstance(policy, Actor)
    assert isinstance(policy.features, Features)
    features = policy.features

    def wanted(belief, spent, allowed):
        public = PublicState(belief, spent, jnp.append(allowed, True), None, None)
        return masked_logits(policy.network, features(public), public.allowed)

    found = states(task)
    check(*run(session_of(file), *found), np.asarray(jax.jit(jax.vmap(wanted))(*found)))


@pytest.mark.parametrize("enforce", ["withhold", "coarsen"])
@pytest.mark.parametrize("inputs", ["described", "rich"])
def test_the_graph_sees_what_would_be_sent(enforce, inputs):
    task = Task(random_model(4, 2, 3, 2, 5), Confidence(0.75), enforcement=named_enforcement(enforce))
    file = actor(task, inputs, seed=5)
    runtime, session = Runtime(file, ""), session_of(file)
    beliefs = states(task)[0][::8]
    beliefs = beliefs[beliefs.sum(2).max(1) < 0.74]
    publics = [runtime.public(Standing(belief, 0.0, 0, 0)) for belief in beliefs]
    kernels = {"kernels": np.array([public.kernels for public in publics])} if inputs == "rich" else {}
    allowed = np.array([public.allowed[:-1] for public in publics])
    wanted = np.array([runtime.policy.scores(public) for public in publics])
    check(*run(session, beliefs, np.zeros(len(beliefs)), allowed, **kernels), wanted)


def test_the_file_explains_itself():
    session = session_of(actor(MASKED, "rich"))
    about = json.loads(session.get_modelmeta().custom_metadata_map["reticent"])
    assert about["sensors"] == list(MASKED.model.sensors)
    assert about["bound"] == {"information": 1.0}
    assert about["policy"] == "0" * 64
    assert list(about["tensors"]) == [*(x.name for x in session.get_inputs()), *(x.name for x in session.get_outputs())]
    assert [x.shape for x in session.get_inputs()] == [["N", 3, 3], ["N"], ["N", 3]]


def test_the_command_writes_the_file(tmp_path, capsys):
    policy, out = tmp_path / "policy.safetensors", tmp_path / "policy.onnx"
    actor(MASKED).save(policy)
    Export(str(policy), out).run()
    assert capsys.readouterr().out == f"Saved {out}.\n"
    # One state, the prior: as the gateway decides.
    runtime = Runtime.load(policy)
    session = onnxruntime.InferenceSession(out.read_bytes(), providers=["CPUExecutionProvider"])
    _, action = run(session, MASKED.model.prior[None], np.zeros(1), np.ones((1, 3), bool))
    decided = runtime.decide(runtime.first(), np.random.default_rng(0)).sensor
    assert action.tolist() == [3 if decided is None else decided]
    about = json.loads(session.get_modelmeta().custom_metadata_map["reticent"])
    assert about["policy"] == runtime.digest


def test_what_is_no_actor_is_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="looks ahead"):
        onnx_model(lookahead(MASKED), "")
    with pytest.raises(InputError, match="on average"):
        onnx_model(actor(Task(synthetic(), ExpectedInformation(0.3))), "")
    with pytest.raises(InputError, match="holds arrays"):
        onnx_model(replace(actor(MASKED, "belief"), settings=actor(MASKED).settings), "")
    (tmp_path / "p.json").write_text("{}")
    with pytest.raises(InputError, match="not a policy file"):
        Export(str(tmp_path / "p.json"), tmp_path / "p.onnx").run()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"pip install 'reticent\[onnx\]'"):
        onnx_model(actor(MASKED), "")
