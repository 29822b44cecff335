"""Training for the long run, in a process that goes on."""

import pytest

from reticent.evaluate.monitoring import monitor
from reticent.policy.actor import OngoingFeatures, features_of
from reticent.problem.bound import Confidence
from reticent.problem.monitoring import Monitoring
from reticent.problem.synthetic import tells_useful
from reticent.process.ongoing import OngoingProcess
from reticent.solve.actor_critic import Recipe, train

# U is drawn anew at each step, so whoever wants to know it must ask each time.
MOVES = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.5, 0.5], [0.5, 0.5]]}


@pytest.fixture(scope="module")
def process():
    return OngoingProcess(Monitoring(tells_useful().moving(MOVES), Confidence(0.8), horizon=50))


@pytest.mark.parametrize("inputs", ["belief", "described", "rich"])
def test_what_a_network_sees_has_the_size_that_is_said(process, inputs):
    features = features_of(process, inputs)
    assert isinstance(features, OngoingFeatures)
    assert features(process.first).shape == (features.size,)


@pytest.mark.slow
@pytest.mark.parametrize("trace", [0.9, 0.0])
def test_training_finds_that_asking_pays_at_each_step(process, trace):
    recipe = Recipe(environments=16, rollout=16, discount=0.9, trace=trace, width=32)
    found = monitor(process, train(process, 20_000, 0, recipe), days=4)
    assert found.releases.value > 0.99
    assert found.cost.value == pytest.approx(1.0, abs=0.3)
