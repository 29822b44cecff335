import json

import pytest

from reticent.errors import InputError
from reticent.problem.bound import Confidence, ExpectedInformation, Information, Unbounded
from reticent.problem.enforcement import (
    AnswerOnly,
    Coarsen,
    Lagrangian,
    Mask,
    PaperCost,
    Penalty,
    Withhold,
    keeping,
    named_enforcement,
)
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic, two_binary_sensors
from reticent.problem.task import Task


@pytest.mark.parametrize("limit", [1 / 3, 0.2, float("nan"), float("inf")])
def test_a_confidence_bound_must_lie_above_the_prior(limit):
    with pytest.raises(InputError, match="confidence bound"):
        Task(synthetic(), Confidence(limit))


@pytest.mark.parametrize("limit", [1.01, 2.0, 80.0])
def test_a_confidence_above_one_is_refused_and_no_bound_has_a_name(limit):
    with pytest.raises(InputError, match=r"at most 1, but is .* --unbounded .* Unbounded\(\)"):
        Confidence(limit)
    assert Task(synthetic(), Unbounded()).enforcement == Penalty()
    assert Task(synthetic(), Confidence(1.0)).bound == Confidence(1.0)


@pytest.mark.parametrize("bits", [0.0, -1.0, float("nan"), float("inf")])
def test_an_information_bound_must_be_positive(bits):
    with pytest.raises(InputError, match="The information bound"):
        Task(synthetic(), Information(bits))
    with pytest.raises(InputError, match="The expected-information bound"):
        Task(synthetic(), ExpectedInformation(bits))


@pytest.mark.parametrize("prices", [{"time_cost": 0.0}, {"error_penalty": -1.0}, {"error_penalty": float("nan")}])
def test_prices_are_checked(prices):
    with pytest.raises(InputError, match="must be"):
        Objective(**prices)


@pytest.mark.parametrize("kind", [Penalty, PaperCost])
@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
def test_violation_costs_are_checked(kind, cost):
    with pytest.raises(InputError, match="violation cost"):
        kind(cost)


def test_an_infinite_violation_cost_forbids():
    assert named_enforcement("penalty", float("inf")) == Mask()
    assert named_enforcement("penalty", 7.0) == Penalty(7.0)
    with pytest.raises(InputError, match="enforce is one of"):
        named_enforcement("hope")


def test_enforcement_follows_the_bound():
    assert Task(synthetic(), Confidence(0.8)).enforcement == Penalty()
    assert Task(synthetic(), Information(0.8)).enforcement == Mask()
    assert Task(synthetic(), ExpectedInformation(0.8)).enforcement == Lagrangian()
    with pytest.raises(InputError, match="'lagrangian', not 'mask'"):
        Task(synthetic(), ExpectedInformation(0.8), enforcement=Mask())
    with pytest.raises(InputError, match="on average, which one on information is not"):
        Task(synthetic(), Information(0.8), enforcement=Lagrangian())
    with pytest.raises(InputError, match="'mask' or 'paper', not 'penalty'"):
        Task(synthetic(), Information(0.8), enforcement=Penalty())
    for replacing in (Withhold(), Coarsen(), AnswerOnly()):
        for bound in (Information(0.8), Unbounded()):
            with pytest.raises(InputError, match="does not limit the posterior of a secret"):
                Task(synthetic(), bound, enforcement=replacing)
    with pytest.raises(InputError, match="horizon"):
        Task(synthetic(), Confidence(0.8), horizon=0)


def test_which_enforcements_keep_a_bound():
    assert keeping(Confidence(0.8)) == ("penalty", "withhold", "coarsen", "answer", "mask", "paper")
    assert keeping(Information(0.8)) == ("mask", "paper")
    assert keeping(ExpectedInformation(0.8)) == ("lagrangian",)


@pytest.mark.parametrize("bound", [Confidence(0.8), Information(0.5), ExpectedInformation(0.5), Unbounded()])
def test_json_round_trip(bound):
    for name in keeping(bound):
        task = Task(two_binary_sensors(), bound, Objective(0.5, 40.0), named_enforcement(name, 7.0), horizon=17)
        again = Task.from_json(json.loads(json.dumps(task.to_json(), allow_nan=False)))
        assert (again.bound, again.objective, again.horizon) == (bound, task.objective, 17)
        assert again.enforcement == task.enforcement
