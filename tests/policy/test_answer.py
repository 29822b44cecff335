"""Answers as files."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from reticent.errors import InputError
from reticent.policy.answer import Answer, AnswerRule, private_task
from reticent.policy.lookahead import lookahead_policy, value_network
from reticent.policy.saved import RULE_ARRAYS, answer_of, policy_file, policy_of
from reticent.policy.store import PolicyFile
from reticent.problem.bound import Confidence
from reticent.problem.enforcement import AnswerOnly, Penalty
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process

TASK = Task(two_binary_sensors(), Confidence(0.7), enforcement=AnswerOnly(), horizon=3)


@pytest.fixture
def file():
    """A rule that waits for time 3 and says the best guess, whoever reads what."""
    chances = np.zeros((2, 2, 2, 2))
    chances[:, [0, 1], 1, [0, 1]] = 1
    prior = np.full((2, 2), 0.25)
    rule = AnswerRule(
        times=np.array([0, 3]),
        chances=chances,
        on_answer=np.stack([[prior, prior], [[[0.4, 0.1], [0.4, 0.1]], [[0.1, 0.4], [0.1, 0.4]]]]),
        in_silence=np.stack([prior, prior]),
        answer_limits=np.full((2, 2), 0.6),
        silence_limits=np.full(2, 0.5),
    )
    process = Process.of(private_task(TASK))
    private = lookahead_policy(process, value_network(process, 8, jax.random.key(5)), "label")
    return policy_file(Answer(TASK, private, rule), TASK, {"seed": 0})


def test_an_answer_comes_back_from_its_file(file, tmp_path):
    file.save(tmp_path / "p.safetensors")
    again = PolicyFile.load(tmp_path / "p.safetensors")
    one, other = answer_of(file).simulate(500, 2), answer_of(again).simulate(500, 2)
    assert jax.tree.all(jax.tree.map(np.array_equal, one, other))
    assert (one.releases == 3).all()
    assert np.allclose(one.cost, 50 * 0.2 + 3)
    assert np.allclose(one.highest_confidence, 0.5)
    with pytest.raises(InputError, match="no readings are released"):
        policy_of(again)


@pytest.mark.parametrize("name", RULE_ARRAYS)
def test_arrays_of_the_rule_must_be_there_and_fit(file, name):
    missing = {key: array for key, array in file.arrays.items() if key != name}
    for arrays in (missing, missing | {name: np.zeros((3, 3))}, missing | {name: file.arrays[name].astype("float32")}):
        with pytest.raises(InputError, match="does not hold the arrays of an answer rule"):
            answer_of(replace(file, arrays=arrays))


def test_what_a_file_says_is_checked(file):
    with pytest.raises(InputError, match="not finite"):
        answer_of(replace(file, arrays=file.arrays | {"in_silence": np.full((2, 2, 2), np.nan)}))
    with pytest.raises(InputError, match=r"up to 0\.9, which is not below the bound 0\.7"):
        answer_of(replace(file, arrays=file.arrays | {"answer_limits": np.full((2, 2), 0.9)}))
    with pytest.raises(InputError, match="its header calls for"):
        answer_of(replace(file, settings={"width": 9}))
    with pytest.raises(InputError, match="do not describe a value"):
        answer_of(replace(file, settings={}))
    with pytest.raises(InputError, match="kind 'answer' that enforces by 'penalty'"):
        answer_of(replace(file, made_for=replace(TASK, enforcement=Penalty())))
