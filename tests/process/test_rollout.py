import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.problem.bound import Confidence, Information
from reticent.problem.synthetic import synthetic, tells_nothing, tells_useful
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import rollout, simulate, simulate_traced


def first_then_stop(_, public):
    sure = public.belief.sum(0).max() > 0.99
    return jnp.where(sure, public.allowed.size - 1, 0)


def test_a_finished_episode_restarts_from_the_prior():
    process = Process.of(Task(tells_useful(), Confidence(0.9)))
    state = process.init(jax.random.key(0))
    _, moments = rollout(process, first_then_stop, jax.random.key(1), state, 6)
    assert moments.action.tolist() == [0, 1, 0, 1, 0, 1]
    assert moments.cost.tolist() == [1, 0, 1, 0, 1, 0]
    assert np.allclose(moments.public.belief[2], process.prior)
    assert np.allclose(moments.after.belief[1], moments.public.belief[1])


def test_episodes_are_whole_and_counted():
    process = Process.of(Task(tells_useful(), Confidence(0.9)))
    records = simulate(process, first_then_stop, 5_000, seed=0)
    assert records.cost.shape == (5_000,)
    assert (records.cost == 1).all()
    assert (records.releases == 1).all()
    assert (records.belief.sum(1).argmax(1) == records.useful).all()


def test_a_cut_episode_pays_for_declaring_where_it_was_cut():
    process = Process.of(Task(tells_nothing(), Confidence(0.9), horizon=7))
    records = simulate(process, lambda key, public: jnp.array(0), 10, seed=0)
    assert records.truncated.all()
    assert (records.releases == 7).all()
    assert records.cost.tolist() == pytest.approx([7 + 25.0] * 10)


def test_the_ledger_never_reaches_its_limit_under_the_mask():
    process = Process.of(Task(synthetic(), Information(0.8), horizon=50))

    def act(key, public):
        return jax.random.categorical(key, jnp.where(public.allowed, 0.0, -jnp.inf))

    records = simulate(process, act, 4_096, seed=0)
    assert (records.spent_bits < 0.8).all()
    assert not records.violated.any()
    assert records.spent_bits.max() > 0.5


def test_the_seed_decides_everything():
    process = Process.of(Task(synthetic(), Confidence(0.9), horizon=20))

    def act(key, public):
        return jax.random.randint(key, (), 0, 4)

    one, two, other = (simulate(process, act, 4_096, seed) for seed in (5, 5, 6))
    assert np.array_equal(one.cost, two.cost)
    assert not np.array_equal(one.cost, other.cost)


def test_traced_episodes_are_the_same_episodes():
    process = Process.of(Task(tells_useful(), Confidence(0.9)))
    plain = simulate(process, first_then_stop, 9_000, seed=4)
    records, sent = simulate_traced(process, first_then_stop, 9_000, seed=4)
    assert jax.tree.all(jax.tree.map(np.array_equal, plain, records))
    assert np.array_equal(np.unique(sent.episode), np.arange(9_000))
    assert sent.chances is None
    released = ~sent.stopped
    assert np.array_equal(sent.episode[released], np.arange(9_000))
    assert np.array_equal(sent.symbol[released], records.useful)
