"""The weights of the value for the long run."""

import pytest

import reticent as rt
from reticent.problem.synthetic import two_binary_sensors
from reticent.process.days import play_days
from reticent.solve import long_run as module
from reticent.solve.long_run import long_run, weighted

MOVES = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.8, 0.2], [0.2, 0.8]]}
TASK = rt.Monitoring(two_binary_sensors().moving(MOVES), rt.Confidence(0.7), horizon=20)


def test_weights_of_one_stay_unless_others_are_clearly_cheaper(monkeypatch):
    monkeypatch.setattr(module, "OMEGAS", (2.0,))
    monkeypatch.setattr(module, "KAPPAS", (0.0,))
    told = []
    found = long_run(TASK, 6, 0, lambda *how: told.append(how))
    assert [done for done, *_ in told] == [0, 1, 2, 3]
    ones = weighted(TASK, 1.0, 1.0)
    cost = [play_days(each.process, each.policy.act, 6, 0).cost.mean() for each in (found, ones)]
    assert cost[0] <= cost[1]
    assert (found.omega, found.kappa) in {(1.0, 1.0), (2.0, 1.0), (1.0, 0.0), (2.0, 0.0)}


def test_a_bound_on_bits_has_no_kernels_to_price():
    task = rt.Monitoring(TASK.model, rt.Information(0.3), window=5, horizon=10)
    assert weighted(task, 1.0, 1.0).task is task


def test_one_day_compares_nothing():
    with pytest.raises(rt.InputError, match="at least two days, not 1"):
        rt.solve(TASK, "long-run", days=1)
