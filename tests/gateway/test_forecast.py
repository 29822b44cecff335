"""What is expected of a gateway before it runs: by other means, the same."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reticent.cli.simulate import PaceOptions, Simulate
from reticent.evaluate.estimate import Estimate
from reticent.gateway.decisions import Standing
from reticent.gateway.forecast import Forecast, Person, forecast, forecast_file
from reticent.gateway.runtime import Runtime
from reticent.gateway.sessions import ASSUMPTION
from reticent.gateway.simulate import Drawn
from reticent.problem.bound import Confidence, Information
from reticent.problem.synthetic import synthetic, two_binary_sensors
from reticent.problem.task import Task
from tests.gateway.parts import Place, coarsened, task, write_policy

NEVER = Estimate(0.0, 0.0, 0.1, "Clopper-Pearson")
HALF = Estimate(0.5, 0.4, 0.6, "Clopper-Pearson")
ABOUT_14 = Estimate(14.0, 13.04, 14.96, "normal")
ALL = Estimate(1.0, 0.9, 1.0, "Clopper-Pearson")


def runtime_of(tmp_path, what: Task | None = None, seed: int = 0) -> Runtime:
    return Runtime.load(write_policy(tmp_path / "policy.safetensors", what, seed))


def information_bits(joint: np.ndarray, channel: np.ndarray) -> float:
    """I(S; Z), from p(s, u) up to a factor and p(z | s, u)."""
    law = np.einsum("su,suz->sz", joint / joint.sum(), channel)
    return float((law * np.log2(law / np.outer(law.sum(1), law.sum(0)))).sum())


class Followed(Person):
    """Keeps the likelihood of everything that was sent, [S U] each, and the channel it came by."""

    def __init__(self, *words) -> None:
        super().__init__(*words)
        self.likelihoods: list[np.ndarray] = []
        self.channels: list[np.ndarray] = []

    def hear(self, sensor, sent):
        channel = self._model.channel[sensor]
        weight = np.eye(channel.shape[-1])[sent.symbol] if sent.chances is None else sent.chances
        self.channels.append(channel)
        self.likelihoods.append(channel @ weight)
        super().hear(sensor, sent)


def lived(person, sessions):
    """The person, so many sessions later."""
    for _ in range(sessions):
        person.session()
    return person


@pytest.mark.parametrize("enforce", ["withhold", "coarsen"])
def test_who_knows_that_the_useful_value_stayed_multiplies_all_that_was_sent(tmp_path, enforce):
    runtime = runtime_of(tmp_path, task(Confidence(0.7), enforce, 6, two_binary_sensors()), seed=1)
    people = [lived(Followed(runtime, 1.0, rng), 6) for rng in map(np.random.default_rng, range(20))]
    for person in people:
        so_far = runtime.task.model.prior * np.cumprod(person.likelihoods, axis=0)
        so_far /= so_far.sum((1, 2), keepdims=True)
        assert person.informed.belief == pytest.approx(so_far[-1], abs=1e-12)
        assert person.over == (so_far.sum(2).max() >= 0.7)
    assert 0 < sum(person.over for person in people) < 20


def test_its_bits_are_those_of_its_own_belief(tmp_path):
    runtime = runtime_of(tmp_path, task(Information(0.5), model=synthetic(noise=3.0)))
    people = [lived(Followed(runtime, 1.0, rng), 6) for rng in map(np.random.default_rng, range(20))]
    prior = runtime.task.model.prior
    for person in people:
        before = [prior, *(prior * np.cumprod(person.likelihoods, axis=0))]
        bits = np.cumsum([information_bits(joint, c) for joint, c in zip(before, person.channels, strict=False)])
        assert person.informed.spent_bits == pytest.approx(bits[-1], abs=1e-9)
        assert person.over == (bits[-1] >= 0.5)
    assert 0 < sum(person.over for person in people) < 20


def test_who_knows_that_it_never_stays_knows_what_the_ledger_says(tmp_path):
    runtime = runtime_of(tmp_path, task(Confidence(0.7), "withhold", 6, two_binary_sensors()), seed=1)
    assert forecast(runtime, 0.0, subjects=20, most_sessions=6).over.value == 0


def test_the_share_over_the_bound_is_that_of_all_histories(tmp_path):
    """One release in each of five sessions: by enumeration of all that can be sent."""
    runtime = runtime_of(tmp_path, task(Confidence(0.6), "withhold", 1, two_binary_sensors()), seed=4)
    model, rng = runtime.task.model, np.random.default_rng(0)

    def chance_of_over(standing: Standing, joint: np.ndarray, sessions: int) -> float:
        if joint.sum(1).max() >= 0.6 * joint.sum():
            return float(joint.sum())
        decision = runtime.decide(standing, rng)
        if sessions == 0 or decision.sensor is None:
            return 0.0
        assert decision.kernel is not None
        total, channel = 0.0, model.channel[decision.sensor]
        for symbol, chances in enumerate([*np.diag(decision.kernel[0]), *decision.kernel[1:]]):
            if (joint @ (channel @ chances).T).max() > 0:
                after = runtime.heard(standing, decision.sensor, symbol, chances)
                start = runtime.next_session(replace(standing, belief=after))
                total += chance_of_over(replace(start, step=0), joint * (channel @ chances), sessions - 1)
        return total

    chance = chance_of_over(runtime.first(), model.prior, 5)
    assert 0.1 < chance < 0.9
    found = forecast(runtime, 1.0, subjects=250, most_sessions=5)
    assert found.over.value == pytest.approx(chance, abs=4 * (chance * (1 - chance) / 250) ** 0.5)


@pytest.mark.slow
def test_a_gateway_falls_silent_when_it_was_forecast(tmp_path):
    """Forty subjects of a real gateway on a real ledger for 20 sessions, and others that are simulated."""
    place = Place(tmp_path, task(Information(0.5), model=synthetic(noise=3.0)), rest=1.0)
    people, rng = [f"p{i}" for i in range(40)], np.random.default_rng(4)
    source = Drawn(place.runtime.task.model, people, seed=3, stays=0.0)
    for _ in range(20):
        place.clock.now += 2.0
        source.begin()
        for _ in range(5):
            place.clock.now += 0.1
            place.gateway.handle(list(source.moment()))
    simulated = [lived(Person(place.runtime, 0.0, rng), 20) for _ in range(200)]
    silent = [(place.gateway.look(who) or {})["state"] == "nothing left to say" for who in people]
    sessions = [place.ledger.counts(who).sessions for who in people]
    for found, expected in (
        (sessions, [each.sessions for each in simulated]),
        (silent, [each.silent for each in simulated]),
    ):
        error = np.hypot(np.std(expected) / 40**0.5, np.std(expected) / 200**0.5)
        assert np.mean(found) == pytest.approx(np.mean(expected), abs=4 * error)
    place.ledger.close()


def test_nothing_that_is_ever_said_and_no_end(tmp_path):
    silent = forecast(runtime_of(tmp_path, task(Information(1e-6), "mask")), subjects=5)
    assert silent.sessions is not None
    assert (silent.sessions.value, silent.silent.value, silent.over.value) == (0, 1, 0)


def test_where_sessions_are_long_all_are_followed_for_fewer(tmp_path, monkeypatch):
    monkeypatch.setattr("reticent.gateway.forecast.MOST_DECISIONS", 60)
    runtime = runtime_of(tmp_path, task(horizon=4, model=two_binary_sensors()))
    # Five decisions in each session of four releases.
    assert forecast(runtime, subjects=6).most_sessions == 2


def test_the_seed_decides_everything(tmp_path):
    runtime = runtime_of(tmp_path)
    one, two, other = (forecast(runtime, 0.5, 5, seed=seed) for seed in (5, 5, 6))
    assert one == two
    assert one != other


@pytest.mark.parametrize(
    ("sessions", "silent", "says"),
    [
        (
            Estimate(14.0, 13.04, 14.96, "normal"),
            ALL,
            "After about 14 sessions [13.0, 15.0] there is nothing left to say",
        ),
        (
            Estimate(14.0, 13.0, 15.0, "normal"),
            HALF,
            "For 50 % [40, 60] of subjects there is nothing left to say after",
        ),
        (None, HALF, "For 50 % [40, 60] of subjects nothing is left to say in the end"),
        (None, NEVER, "Every subject still has something to say after 30 sessions"),
    ],
)
def test_sentences(sessions, silent, says):
    found = Forecast(40, 30, 0.25, sessions, silent, HALF)
    assert found.silence.startswith(says)
    assert "(estimate, 40 simulated subjects" in found.silence
    assert "after 25 % of sessions" in found.informed
    assert "50 % [40, 60] of subjects within 30 sessions (estimate" in found.informed


def test_simulate_tells_what_to_expect(tmp_path, capfd):
    policy = str(write_policy(tmp_path / "policy.safetensors", task(model=two_binary_sensors())))
    Simulate(policy, 1, 1, PaceOptions(interval=0.0, readings=1), stays=0.5).run()
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 2
    assert "the useful value stays in the next episode with chance 0.5" in err
    assert "nothing left to say" in err or "something to say" in err
    assert ASSUMPTION in err
    assert "after 50 % of sessions, a provider who knows when it does reaches the bound for" in err


@pytest.mark.parametrize("page", ["gateway.md", "ledger.md"])
def test_the_guides_say_the_same_sentence(page):
    words = (Path(__file__).parents[2] / "docs" / page).read_text().replace("\n> ", " ")
    assert f"\n {ASSUMPTION}\n" in words


def test_of_a_policy_that_no_gateway_serves_nothing_is_expected(tmp_path):
    what = task(Confidence(0.8), "penalty", model=two_binary_sensors())
    assert forecast_file(write_policy(tmp_path / "policy.safetensors", what)) is None


@pytest.mark.slow
def test_on_the_synthetic_problem_most_are_over_the_bound_if_nothing_changes(tmp_path):
    """An actor that nobody trained, under coarsening."""
    found = forecast(runtime_of(tmp_path, coarsened()), 1.0, subjects=60, most_sessions=8)
    assert found.over.low > 0.5
    assert forecast(runtime_of(tmp_path, coarsened()), 0.0, subjects=10, most_sessions=8).over.value == 0
