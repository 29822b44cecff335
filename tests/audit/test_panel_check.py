"""The check that a bound holds for every provider of a panel."""

import jax.numpy as jnp
import pytest

import reticent as rt
from reticent.audit import panel_check
from reticent.audit.panel_check import panel_checks
from reticent.policy.policy import NEVER, RandomSensor
from tests.guard.test_panel import model_with_panel

LIMIT = 0.7


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(panel_check, "EPISODES", 256)


def test_a_bound_that_is_kept_for_the_panel_passes_and_one_that_is_not_fails():
    model, policy = model_with_panel(0, symbols=3), RandomSensor(jnp.asarray(NEVER))
    task = rt.Task(model, rt.Confidence(LIMIT), enforcement=rt.Coarsen(), horizon=3)
    [check] = panel_checks(task, rt.Process.of(task), policy, seed=0)
    assert check.passed
    assert check.sentence.startswith("The beliefs of 3 further providers reached 0.6")
    alone = rt.Task(model.with_panel([]), rt.Confidence(LIMIT), enforcement=rt.Coarsen(), horizon=3)
    [check] = panel_checks(task, rt.Process.of(alone), policy, seed=0)
    assert not check.passed
    assert panel_checks(alone, rt.Process.of(alone), policy, seed=0) == []
