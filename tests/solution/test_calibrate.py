"""Calibration on people who differ from those whom the model was fitted to."""

from dataclasses import replace

import numpy as np
import pytest

import reticent as rt
from reticent.evaluate.claim import Claim, Wanted
from reticent.fit.model import fit_model
from reticent.problem.synthetic import two_binary_sensors
from reticent.solution import calibrate as module
from reticent.solution.calibrate import Tries, calibrate, sharper
from reticent.solution.solution import Solution
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()
STREAMS = readings_of(MODEL, places_of(MODEL), people=9, length=60)
TRIES = Tries(bounds=2, episodes=400, horizon=3)


@pytest.fixture(scope="module")
def fitted():
    return fit_model(STREAMS.of([0, 1]), codes=2)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """One-step lookahead in place of a policy that takes long to train."""

    def solve(task, *_, **__):
        return Solution.of(task, rt.OneStepLookahead(rt.Process.of(task)))

    monkeypatch.setattr(module, "solve", solve)


def test_a_limit_that_holds_for_all_is_claimed(fitted):
    found = calibrate(fitted, STREAMS, Wanted(0.9, level=0.9, share=0.7), TRIES)
    assert [each.bound for each in found.tried] == pytest.approx([0.7, 0.9])
    assert all(each.accepted for each in found.tried)
    assert found.claim is not None
    assert found.best is not None
    assert found.solution is not None
    assert found.claim.people == 7
    assert found.best.useful == max(each.useful for each in found.tried)
    assert found.solution.made["claim"] == found.claim.to_json()
    assert Claim.made_with(found.solution.made) == found.claim
    # Only people whom the model was not fitted to were tried.
    assert {person.name for person in found.tried[0].found.people} == {f"person {i}" for i in range(2, 9)}


def test_a_limit_that_does_not_hold_is_not_claimed(fitted):
    """The readings of those who are tried tell the secret for sure: more than any bound of the model says."""
    values = np.where(STREAMS.person[:, None, None] > 1, STREAMS.secret[:, None, None], STREAMS.values)
    values = np.broadcast_to(values, STREAMS.values.shape).astype(np.float32)
    found = calibrate(fitted, replace(STREAMS, values=values), Wanted(0.6, level=0.9, share=0.7), TRIES)
    assert found.claim is None
    assert found.solution is None
    # It stopped at the first policy that was not accepted.
    assert len(found.tried) == 1
    assert len(found.tried[0].found.over) == 7


def test_too_few_people_are_refused_before_anything_is_tried(fitted):
    with pytest.raises(rt.InputError, match="at least 22 are needed"):
        calibrate(fitted, STREAMS, Wanted(0.7), TRIES)


def test_a_limit_below_guessing_is_refused(fitted):
    with pytest.raises(rt.InputError, match=r"The limit 0\.5 is not above 0\.5"):
        calibrate(fitted, STREAMS, Wanted(0.5, share=0.7), TRIES)


def test_a_sharper_panel_counts_readings_more():
    wide = sharper(MODEL.with_panel([{"prior": [[0.3, 0.2], [0.3, 0.2]]}]), 2.0)
    assert len(wide.panel) == 2
    assert np.array_equal(wide.panel[1].prior, [[0.3, 0.2], [0.3, 0.2]])
    said = lambda channel: np.diff(np.log(channel[:, 0, 0] / channel[:, 1, 1]))  # noqa: E731
    assert np.allclose(said(wide.panel[0].channel), 2 * said(MODEL.channel))
    assert sharper(MODEL, 1.0) is MODEL


def test_a_claim_that_was_edited_is_refused():
    assert Claim.made_with({"method": "ppo"}) is None
    with pytest.raises(rt.InputError, match="a claim that cannot be read"):
        Claim.made_with({"claim": {"limit": 0.5}})
