import json

import pytest

from reticent.errors import InputError
from reticent.problem.bound import NO_BOUND, ConfidenceBound, ExpectedInformationBound, InformationBound, Unbounded
from reticent.problem.objective import Objective
from reticent.problem.synthetic import synthetic, two_binary_sensors
from reticent.problem.task import Task


@pytest.mark.parametrize("limit", [1 / 3, 0.2, float("nan"), float("inf")])
def test_a_confidence_bound_must_lie_above_the_prior(limit):
    with pytest.raises(InputError, match="confidence bound"):
        Task(synthetic(), ConfidenceBound(limit))


@pytest.mark.parametrize("limit", [1.01, 2.0, 80.0])
def test_a_confidence_above_one_is_refused_and_no_bound_has_a_name(limit):
    with pytest.raises(InputError, match=r"at most 1, but is .* --unbounded .* NO_BOUND"):
        ConfidenceBound(limit)
    with pytest.raises(InputError, match=r"A confidence of 0.9 can be reached"):
        Unbounded(0.9)
    assert Task(synthetic(), NO_BOUND).enforce == "penalty"
    assert Task(synthetic(), ConfidenceBound(1.0)).bound == ConfidenceBound(1.0)


@pytest.mark.parametrize("limit", [1.01, 2.0])
def test_files_from_before_keep_the_limit_that_their_networks_saw(limit):
    written = {**Task(two_binary_sensors(), NO_BOUND).to_json(), "bound": {"confidence": limit}}
    again = Task.from_json(written)
    assert again.bound == Unbounded(limit)
    assert again.to_json() == written


@pytest.mark.parametrize("bits", [0.0, -1.0, float("nan"), float("inf")])
def test_an_information_bound_must_be_positive(bits):
    with pytest.raises(InputError, match="The information bound"):
        Task(synthetic(), InformationBound(bits))
    with pytest.raises(InputError, match="The expected-information bound"):
        Task(synthetic(), ExpectedInformationBound(bits))


@pytest.mark.parametrize("prices", [{"time_cost": 0.0}, {"error_penalty": -1.0}, {"violation_cost": float("nan")}])
def test_prices_are_checked(prices):
    with pytest.raises(InputError, match="must be"):
        Objective(**prices)


def test_enforcement_follows_the_bound():
    assert Task(synthetic(), ConfidenceBound(0.8)).enforce == "penalty"
    assert Task(synthetic(), InformationBound(0.8)).enforce == "mask"
    assert Task(synthetic(), ExpectedInformationBound(0.8)).enforce == "multiplier"
    with pytest.raises(InputError, match="'multiplier'"):
        Task(synthetic(), ExpectedInformationBound(0.8), enforce="mask")
    with pytest.raises(InputError, match="'mask', 'paper'"):
        Task(synthetic(), InformationBound(0.8), enforce="multiplier")
    with pytest.raises(InputError, match="'penalty', 'withhold', 'coarsen', 'answer', 'paper'"):
        Task(synthetic(), ConfidenceBound(0.8), enforce="mask")
    with pytest.raises(InputError, match="finite violation cost"):
        Task(synthetic(), ConfidenceBound(0.8), Objective(violation_cost=float("inf")), enforce="paper")
    with pytest.raises(InputError, match="horizon"):
        Task(synthetic(), ConfidenceBound(0.8), horizon=0)


@pytest.mark.parametrize(
    "bound", [ConfidenceBound(0.8), InformationBound(0.5), ExpectedInformationBound(0.5), NO_BOUND]
)
def test_json_round_trip(bound):
    task = Task(two_binary_sensors(), bound, Objective(0.5, 40.0, float("inf")), horizon=17)
    again = Task.from_json(json.loads(json.dumps(task.to_json(), allow_nan=False)))
    assert (again.bound, again.objective, again.enforce, again.horizon) == (bound, task.objective, task.enforce, 17)
