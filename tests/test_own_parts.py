"""A user's own bound and own enforcement, from Python through solving, evaluation, certificate and audit."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import reticent as rt
from reticent.policy.policy import RandomSensor
from reticent.problem.synthetic import two_binary_sensors


@dataclass(frozen=True)
class PerSecret(rt.PosteriorBound):
    """One limit per secret: being taken for s1 is worse than being taken for s0."""

    name: ClassVar[str] = "per secret"
    first: float
    second: float

    def secret_limits(self, secrets: int) -> Any:
        return jnp.stack([jnp.asarray(self.first), jnp.asarray(self.second)])


@dataclass(frozen=True)
class Quiet(rt.Mask):
    """A mask that also keeps sensors quiet that hardly say anything."""

    name: ClassVar[str] = "quiet"
    promised: ClassVar[str] = "never crossed, and nothing is sent for nothing"
    least_bits: float = 0.01

    def allowed(self, bound: rt.Bound, prospect: Any) -> Any:
        return super().allowed(bound, prospect) & (prospect.bits >= self.least_bits)


MODEL = two_binary_sensors()
OWN = PerSecret(0.9, 0.6)
SHORT: dict[str, Any] = {"rounds": 2, "width": 16, "lanes": 64, "groups": 1}


@pytest.mark.parametrize(
    "enforcement", [rt.Coarsen(), rt.Withhold(), rt.Mask(), rt.Penalty(50.0)], ids=lambda e: e.name
)
def test_a_bound_of_ones_own_is_kept_by_every_enforcement_of_posteriors(enforcement):
    process = rt.Process.of(rt.Task(MODEL, OWN, enforcement=enforcement, horizon=20))
    rt.check_process(process)
    found = rt.Solution.of(process.task, rt.OneStepLookahead(process)).evaluate(8_192, seed=1)
    assert found.releases.value > 0.5
    if enforcement.promise is rt.Promise.NEVER:
        assert found.violation_rate.value == 0
    from reticent.process.rollout import simulate

    beliefs = simulate(process, RandomSensor(jnp.asarray(2.0)).act, 8_192, seed=2).belief.sum(2)
    if enforcement.promise is rt.Promise.NEVER:
        assert beliefs[:, 1].max() < 0.6
        # The other secret may become surer than that, and does where anything may be said at all.
        assert beliefs[:, 0].max() < 0.9
        assert beliefs[:, 0].max() > 0.6 or enforcement.name == "mask"
    else:
        assert (beliefs[:, 1] >= 0.6).any()


def test_other_limits_do_not_recompile():
    from reticent.process.process import _kernels

    size = _kernels._cached._cache_size()  # type: ignore[attr-defined]
    for limit in (0.61, 0.62, 0.63):
        rt.Process.of(rt.Task(MODEL, PerSecret(0.9, limit), enforcement=rt.Coarsen()))
    assert _kernels._cached._cache_size() - size <= 1  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_bound_of_ones_own_is_solved_certified_and_audited():
    task = rt.Task(MODEL, OWN, horizon=20)
    exact = rt.solve(task, "lattice")
    assert exact.gap < 1e-6
    # Looser than .6 for both, tighter than .9 for both (mathematics: problem P1).
    assert 7.197961 - 1e-6 <= exact.upper <= 12.883022 + 1e-6
    certificate = rt.Solution.of(task, rt.OneStepLookahead(rt.Process.of(task))).certify()
    assert certificate.lower.value == pytest.approx(exact.lower)
    assert certificate.upper.high >= exact.upper
    kept = rt.Task(MODEL, OWN, enforcement=rt.Coarsen(), horizon=6)
    found = rt.solve(kept, "value-iteration", **SHORT).audit(1_000, quick=True)
    assert found.audit.limit == pytest.approx(0.9)
    assert found.audit.passed is not False


def test_a_bound_of_ones_own_is_refused_where_it_makes_no_sense_or_cannot_be_written():
    with pytest.raises(rt.InputError, match=r"is not above 0\.5, the largest prior"):
        rt.Task(MODEL, PerSecret(0.9, 0.4))
    task = rt.Task(MODEL, OWN, enforcement=rt.Coarsen())
    with pytest.raises(rt.InputError, match="but not PerSecret"):
        rt.solve(task, "value-iteration", **SHORT).save("never.safetensors")


def test_an_enforcement_of_ones_own():
    task = rt.Task(MODEL, rt.Information(0.5), enforcement=Quiet(least_bits=0.02), horizon=30)
    process = rt.Process.of(task)
    rt.check_process(process)
    found = rt.Solution.of(task, RandomSensor(jnp.asarray(2.0))).evaluate(4_096, seed=0)
    assert found.violation_rate.value == 0
    # Sensor 1 of P1 says about 0.002 bits: it never speaks.
    assert process.first.allowed.tolist() == [True, False, True]
    assert np.isfinite(found.cost.value)
