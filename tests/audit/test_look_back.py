"""Attackers who look back: exact where the model is known, and able to find what only later releases tell."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.audit.bidirectional import MARGIN, STEPS, BiLstm, pieces_of
from reticent.audit.look_back import RefittedHmm, Smoother, said_law
from reticent.audit.moving_traces import MovingTraces
from reticent.audit.window_trees import WindowTrees
from reticent.errors import InputError
from tests.lives import MODEL, played

LEARNED, JUDGED = played(100, 200), played(100, 200, seed=1)


def right(attacker, traces, label="secret"):
    return float((getattr(attacker.posterior(traces), label).argmax(1) == getattr(traces, label)).mean())


def test_rows_of_traces():
    two = played(2, 3)
    assert (len(two), two.episodes, two.step.tolist(), two.different) == (6, 2, [0, 1, 2] * 2, 5)
    assert two.said.tolist() == [0 if a < 0 else 1 + 2 * a + z for a, z in zip(two.sensor, two.symbol, strict=True)]
    # Of episodes of different lengths the shorter one is filled up.
    shorter = two.take(np.array([0, 1, 2, 3]))
    assert shorter.padded(np.arange(4.0), -1.0).tolist() == [[0, 1, 2], [3, -1, -1]]
    assert shorter.take(shorter.episode == 1).episode.tolist() == [0]
    # In another order episodes are numbered as they come.
    assert two.take(np.array([3, 4, 5, 0, 1, 2])).episode.tolist() == [0, 0, 0, 1, 1, 1]


@given(seed=st.integers(0, 2**31 - 1))
def test_the_smoother_is_the_sum_over_all_paths(seed):
    traces = played(1, 4, seed)
    assert traces.likelihood is not None
    moves, prior, likelihood = (
        each.reshape(*shape)
        for each, shape in ((MODEL.dynamics, (4, 4)), (MODEL.prior, (4,)), (traces.likelihood, (4, 4)))
    )
    found = np.zeros((4, 4))
    for path in product(range(4), repeat=4):
        chance = prior[path[0]] * np.prod([moves[x, y] for x, y in pairwise(path)])
        chance *= np.prod([likelihood[t, x] for t, x in enumerate(path)])
        for t, x in enumerate(path):
            found[t, x] += chance
    found = (found / found.sum(1, keepdims=True)).reshape(4, 2, 2)
    said = Smoother(MODEL).posterior(traces)
    assert np.allclose(said.secret, found.sum(2))
    assert np.allclose(said.useful, found.sum(1))
    # At the end, what is believed in hindsight is what is believed at the time.
    assert np.allclose(Smoother(MODEL).at_the_time(traces).secret[-1], said.secret[-1])


def test_the_smoother_needs_likelihoods():
    with pytest.raises(InputError, match="Give a model"):
        Smoother(MODEL).posterior(replace(JUDGED, likelihood=None))


def test_what_is_learned_comes_near_to_the_smoother():
    best = right(Smoother(MODEL), JUDGED)
    hmm, trees = RefittedHmm(), WindowTrees()
    for attacker in (hmm, trees):
        attacker.fit(replace(LEARNED, likelihood=None))
    blind = replace(JUDGED, likelihood=None)
    # 20,000 moments of 100 people, which are not independent; counts of as many lose some, trees more.
    assert best - 0.03 < right(hmm, blind) < best + 0.01
    assert best - 0.06 < right(trees, blind) < best + 0.01
    assert best > 0.58
    assert right(hmm, blind, "useful") == pytest.approx(right(Smoother(MODEL), JUDGED, "useful"), abs=0.02)


def test_laws_of_what_is_said_are_laws_that_exclude_nothing():
    law = said_law(LEARNED)
    assert law.shape == (4, 5)
    assert np.allclose(law.sum(1), 1)
    assert (law > 0).all()
    # Silence comes in a third of the steps, whatever is hidden: four standard errors are .05.
    assert np.allclose(law[:, 0], 1 / 3, atol=0.05)


def late(people: int, steps: int, seed: int) -> MovingTraces:
    """The only sensor says what the secret was two steps ago: to who knows the past only, that is too late."""
    traces = played(people, steps, seed, MODEL.moving({"secret": [[0.5, 0.5]] * 2, "useful": [[0.5, 0.5]] * 2}))
    before = np.where(traces.step >= 2, np.roll(traces.secret, 2), 0)
    return replace(traces, sensor=np.zeros(len(traces), int), symbol=before, likelihood=None)


def test_trees_find_what_is_told_later():
    trees = WindowTrees()
    trees.fit(late(20, 60, 0))
    judged = late(20, 60, 1)
    said = trees.posterior(judged).secret.argmax(1) == judged.secret
    known = judged.step < 58
    assert said[known].mean() > 0.98
    # Of the last two steps nothing was told: four standard errors of 40 guesses are .32.
    assert said[~known].mean() == pytest.approx(0.5, abs=0.32)


def test_the_network_gives_laws_and_keeps_the_lowest_loss(monkeypatch):
    for name, value in (("UPDATES", 12), ("BETWEEN", 3), ("BATCH", 4), ("PIECES_AT_ONCE", 8)):
        monkeypatch.setattr(f"reticent.audit.bidirectional.{name}", value)
    told = []
    network = BiLstm(0, lambda done, loss: told.append(loss))
    network.fit(late(10, 60, 0))
    judged = late(3, 150, 1)
    posterior = network.posterior(judged)
    assert posterior.secret.shape == (450, 2)
    assert np.allclose(posterior.secret.sum(1), 1)
    assert (np.diff(told) <= 0).all()
    # Guessing costs log 4 nats for four pairs.
    assert told[-1] < np.log(4) + 0.05


@pytest.mark.slow
def test_the_network_finds_what_is_told_later():
    network = BiLstm(0)
    network.fit(late(20, 60, 0))
    judged = late(20, 60, 1)
    assert (network.posterior(judged).secret.argmax(1) == judged.secret)[judged.step < 58].mean() > 0.95


def test_pieces_hold_every_moment_once():
    traces = played(3, 150)
    seen = pieces_of(traces.take(np.arange(400)))
    # Episodes of 150, 150 and 100 steps, of which a piece holds 64 and reads as many around them.
    assert seen.sensor.shape == (3 + 3 + 2, STEPS)
    assert seen.weight.sum() == 400
    inner = slice(MARGIN, STEPS - MARGIN)
    assert (seen.weight[:, :MARGIN] == 0).all()
    moments = seen.pair[:, inner][seen.weight[:, inner] > 0]
    assert moments.tolist() == traces.pair[:400].tolist()
    # What was sent just before a piece stands in its margin.
    assert seen.pair[1, :MARGIN].tolist() == seen.pair[0, STEPS - 2 * MARGIN : STEPS - MARGIN].tolist()


def test_one_class_alone_is_certain():
    few = played(4, 50)
    trees = WindowTrees()
    trees.fit(replace(few, secret=np.zeros(len(few), int)))
    assert (trees.posterior(few).secret == [1.0, 0.0]).all()
