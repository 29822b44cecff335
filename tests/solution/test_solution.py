"""One object from task to file and back, whatever leaves the device."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import reticent as rt
from reticent.gateway.runtime import Runtime
from reticent.problem.synthetic import tells_nothing, two_binary_sensors
from reticent.process.rollout import simulate
from reticent.solution.methods import METHODS
from reticent.solve.actor_critic import Recipe, train
from reticent.solve.answer import answer
from reticent.solve.value_iteration import Settings, value_iteration

SHORT: dict[str, Any] = {"rounds": 2, "lanes": 64, "groups": 2, "rollout": 4, "width": 16}
COARSENED = rt.Task(two_binary_sensors(), rt.Confidence(0.7), enforcement=rt.Coarsen(), horizon=6)
ANSWERED = rt.Task(two_binary_sensors(), rt.Confidence(0.7), enforcement=rt.AnswerOnly(), horizon=6)


@pytest.fixture(scope="module")
def answered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer, "__defaults__", (0, 2**10))
        return rt.solve(ANSWERED, "value-iteration", **SHORT)


def test_solving_is_what_the_lower_functions_do():
    solution = rt.solve(COARSENED, "value-iteration", seed=3, **SHORT)
    policy = value_iteration(rt.Process.of(COARSENED), 3, Settings(**SHORT))
    one, other = solution.simulate(500, 1), simulate(policy.process, policy.act, 500, 1)
    assert np.array_equal(one.cost, other.cost)
    assert solution.made["method"] == "value-iteration"
    assert solution.made["done"] == 2


def test_an_agent_comes_back_from_its_file_with_the_same_numbers(tmp_path):
    task = rt.Task(two_binary_sensors(), rt.Confidence(0.8), horizon=6)
    few: dict[str, Any] = {"environments": 8, "rollout": 4, "width": 8}
    solution = rt.solve(task, "ppo", steps=64, **few)
    plain = train(rt.Process.of(task), 64, 0, Recipe(**few))
    assert np.array_equal(solution.simulate(500, 1).cost, simulate(rt.Process.of(task), plain.act, 500, 1).cost)
    solution.save(tmp_path / "p.safetensors")
    again = rt.load(tmp_path / "p.safetensors")
    assert again.evaluate(500) == solution.evaluate(500)
    assert again.made["steps"] == 64
    withheld = rt.load(tmp_path / "p.safetensors", rt.Withhold())
    assert isinstance(withheld, rt.Solution)
    assert withheld.task.enforcement == rt.Withhold()
    assert withheld.evaluate(500).violation_rate.value == 0


def test_answers_are_a_solution_like_any_other(answered, tmp_path):
    found = answered.evaluate(2_000, seed=5)
    assert found.violation_rate.value == 0
    assert found.cost.value <= 25
    assert answered.cost(2_000, 5).value == found.cost.value
    answered.save(tmp_path / "a.safetensors")
    again = rt.load(tmp_path / "a.safetensors")
    assert isinstance(again, rt.Solution)
    assert again.evaluate(2_000, seed=5) == found
    assert again.task.enforcement.promise is rt.Promise.NEVER
    with pytest.raises(rt.InputError, match="in no other way"):
        rt.load(tmp_path / "a.safetensors", rt.Penalty())
    with pytest.raises(rt.InputError, match="no traces"):
        again.evaluate(2_000, traces=tmp_path / "t.parquet")
    with pytest.raises(rt.InputError, match="nothing to replay"):
        again.audit(2_000, data=tmp_path)
    with pytest.raises(rt.InputError, match="which the gateway cannot do"):
        Runtime.load(tmp_path / "a.safetensors")


def test_the_method_answer_answers_whatever_kept_the_bound(monkeypatch):
    monkeypatch.setattr(answer, "__defaults__", (0, 2**8))
    solution = rt.solve(COARSENED, "answer", **SHORT)
    assert solution.task.enforcement == rt.AnswerOnly()
    assert solution.made["method"] == "answer"


def test_methods_that_only_bracket_the_cost_say_so():
    task = rt.Task(tells_nothing(), rt.Confidence(0.8))
    assert rt.solve(task, "lattice").upper == pytest.approx(25)
    assert rt.solve(task, "tree", horizon=1).upper == pytest.approx(25)


@pytest.mark.parametrize(
    ("method", "options", "sentence"),
    [
        (
            "guess",
            {},
            "problem with a stop is one of ppo, a2c, value-iteration, answer, lattice, tree, but is 'guess'",
        ),
        ("ppo", {"rounds": 3}, "no option 'rounds'; it has steps, environments"),
        ("value-iteration", {"kernels": "value"}, "Value kernels go with withhold and coarsen, not with 'answer'"),
        ("tree", {"steps": 3}, "no option 'steps'; it has horizon, max_nodes"),
        ("ppo", {}, "made by the method 'value-iteration', not by 'ppo'"),
        ("lattice", {}, "not by 'answer'"),
    ],
)
def test_what_a_method_cannot_do_is_refused(method, options, sentence):
    with pytest.raises(rt.InputError, match=sentence):
        rt.solve(ANSWERED, method, **options)
    assert len(METHODS) == 6


def test_a_policy_of_ones_own_is_not_saved_but_evaluated():
    class Stops(rt.Policy):
        def act(self, key, public):
            return jnp.asarray(public.allowed.size - 1)

    solution = rt.Solution.of(COARSENED, Stops())
    assert solution.evaluate(100).cost.value == pytest.approx(25)
    with pytest.raises(rt.InputError, match="but not a Stops"):
        solution.save("never.safetensors")


def test_a_broken_contract_is_told():
    class Wrong(rt.Policy):
        def act(self, key, public):
            return jnp.asarray(7)

    with pytest.raises(rt.InputError, match="an action that does not exist"):
        rt.check_policy(rt.Process.of(COARSENED), Wrong())
    model = two_binary_sensors()
    object.__setattr__(model, "channel", model.channel * 0.9)
    with pytest.raises(rt.InputError, match="row of the channel"):
        rt.check_model(model)
