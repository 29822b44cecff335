"""A model that fits is left alone, one that does not is found out, and only what was sent counts."""

import numpy as np
import pytest

from reticent.gateway.drift import LEAST_RELEASES, Tally
from reticent.gateway.emitter import Surprise
from reticent.gateway.runtime import Runtime
from reticent.problem.bound import Information
from reticent.problem.synthetic import synthetic
from tests.gateway.parts import task, write_policy


def test_by_hand():
    tally = Tally().after(Surprise(3.0, 1.0, 4.0)).after(Surprise(1.0, 1.5, 1.0))
    assert tally.excess == pytest.approx(0.99 * 2.0 - 0.5)
    assert tally.variance == pytest.approx(0.99**2 * 4.0 + 1.0)
    assert tally.releases == 2


def test_nothing_is_said_before_enough_releases():
    tally = Tally()
    for release in range(1, 40):
        tally = tally.after(Surprise(100.0, 1.0, 1.0))
        assert tally.drifted == (release >= LEAST_RELEASES)


def test_less_surprise_than_expected_is_no_drift():
    tally = Tally()
    for _ in range(200):
        tally = tally.after(Surprise(0.0, 1.0, 1.0))
    assert not tally.drifted


def test_sensors_without_any_surprise_are_no_drift():
    tally = Tally()
    for _ in range(50):
        tally = tally.after(Surprise(0.0, 0.0, 0.0))
    assert not tally.drifted


def test_rounding_errors_are_no_drift():
    """Where one reading is all but certain, its variance rounds to zero and its surprise not quite."""
    tally = Tally()
    for _ in range(500):
        tally = tally.after(Surprise(3e-16, 1e-16, 0.0))
    assert not tally.drifted
    for _ in range(20):
        tally = tally.after(Surprise(0.01, 1e-16, 0.0))
    assert tally.drifted


def play(runtime: Runtime, channel: np.ndarray, releases: int, seed: int) -> Tally:
    """One sensor, over sessions of one subject, with readings from this channel."""
    rng, tally, standing = np.random.default_rng(seed), Tally(), runtime.first()
    secret, useful = rng.integers(3, size=2)
    for _ in range(releases):
        decision = runtime.decide(standing, rng)
        if decision.sensor is None:
            standing, useful = runtime.next_session(standing), rng.integers(3)
            continue
        reading = int(rng.choice(50, p=channel[decision.sensor, secret, useful]))
        sent, standing = runtime.release(standing, decision, reading, rng)
        tally = tally.after(sent.surprise)
        if tally.drifted:
            break
    return tally


@pytest.fixture(scope="module")
def unhindered(tmp_path_factory):
    """The synthetic problem with so loose a bound that much is said."""
    loose = task(Information(1000.0), "mask", horizon=10)
    return Runtime.load(write_policy(tmp_path_factory.mktemp("loose") / "policy.safetensors", loose))


def test_subjects_whom_the_model_fits_are_left_alone(unhindered):
    """10 subjects with up to 150 releases each, seeds fixed: some thousand checks, of which none may be wrong."""
    assert not any(play(unhindered, synthetic().channel, 150, seed).drifted for seed in range(10))


@pytest.mark.slow
def test_many_subjects_whom_the_model_fits_are_left_alone(unhindered):
    """40 subjects with up to 300 releases each: a wrong one among 12,000 checks would be a lot at five deviations."""
    assert not any(play(unhindered, synthetic().channel, 300, seed).drifted for seed in range(40))


def test_another_world_is_found_out(unhindered):
    """Readings that are spread much wider than the model says surprise it, for each of 5 subjects."""
    other = 0.3 * synthetic().channel + 0.7 / 50
    found = [play(unhindered, other, 200, seed) for seed in range(5)]
    assert all(tally.drifted for tally in found)
    assert max(tally.releases for tally in found) < 100
