"""The process trusts no policy and no sensor: what is not allowed or not possible is refused, never carried out."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reticent.audit.sessions import repeated_sessions
from reticent.belief.filter import NearestSymbolFilter
from reticent.belief.lstm import LstmFilter
from reticent.data.episodes import episodes_of
from reticent.errors import InputError
from reticent.evaluate.evaluation import evaluate
from reticent.policy.policy import Policy
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import Coarsen, Mask, PaperCost, Withhold
from reticent.problem.synthetic import tells_both, two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import rollout, simulate
from reticent.process.source import FromCodes
from tests.streams import places_of, readings_of

# Each forbids something right at the start, or after a release or two.
TASKS = {
    "mask": Task(tells_both(), Information(0.5)),
    "inadmissible": Task(tells_both(), Confidence(0.8), enforcement=Mask()),
    "withhold": Task(two_binary_sensors(), Confidence(0.6), enforcement=Withhold(), horizon=30),
    "coarsen": Task(two_binary_sensors(), Confidence(0.6), enforcement=Coarsen(), horizon=30),
}
QUICK = ("mask", "coarsen")


class Heedless(Policy):
    """Always the same sensor, whether it is allowed or not."""

    action: int = 0

    def act(self, key, public):
        del key, public
        return jnp.asarray(self.action)


@eqx.filter_jit
def heedless_play(process):
    def lane(key):
        return rollout(process, Heedless().act, key, process.init(key), 40)[1]

    return jax.vmap(lane)(jax.random.split(jax.random.key(0), 50))


@pytest.mark.parametrize("name", ["mask", pytest.param("coarsen", marks=pytest.mark.slow)])
def test_evaluation_refuses_a_policy_that_ignores_what_is_allowed(name):
    with pytest.raises(InputError, match=r"Step \d+: the policy chose sensor 0, which is not allowed there"):
        evaluate(Process.of(TASKS[name]), Heedless(), 200)


@pytest.mark.slow
def test_repeated_sessions_refuse_it_as_well():
    with pytest.raises(InputError, match="sensor 0, which is not allowed there"):
        repeated_sessions(Process.of(TASKS["coarsen"]), Heedless(), sessions=2, episodes=10, seed=0, carried=True)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in TASKS]
)
def test_compiled_play_stops_where_a_policy_ignores_what_is_allowed(name):
    process = Process.of(TASKS[name])

    moments = heedless_play(process)
    refused = ~np.asarray(moments.public.allowed)[..., 0]
    assert refused.any()
    assert np.asarray(moments.terminated)[refused].all()
    assert np.array_equal(moments.after.belief[refused], moments.public.belief[refused])
    assert np.asarray(jax.vmap(jax.vmap(process.used))(moments.after.belief, moments.after.spent_bits)).max() < 1


def test_an_action_that_does_not_exist_is_refused():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.9)))
    with pytest.raises(InputError, match="Step 0: the policy chose action -1, which is out of range 0-2"):
        evaluate(process, Heedless(-1), 200)
    with pytest.raises(InputError, match="Step 0: the policy chose action 7, which is out of range 0-2"):
        process.step(jax.random.key(0), process.init(jax.random.key(0)), jnp.asarray(7))


def test_a_step_by_hand_names_step_and_sensor():
    process = Process.of(TASKS["mask"])
    with pytest.raises(InputError, match="Step 0: the policy chose sensor 0, which is not allowed there"):
        process.step(jax.random.key(0), process.init(jax.random.key(0)), jnp.asarray(0))


def test_a_plain_integer_is_an_action():
    process = Process.of(Task(two_binary_sensors(), Confidence(0.9), horizon=3))
    records = simulate(process, lambda key, public: 1, 10, seed=0)
    assert (records.releases == 3).all()


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda key, public: 0 if public.allowed[0] else 2, "Write `jnp.where"),
        (lambda key, public: int(public.belief.argmax()), "Write `jnp.where"),
        (lambda key, public: np.asarray(public.belief).argmax(), "Write `jnp.where"),
        (lambda key, public: 0.0, "must return one integer.*shape \\(\\) and type float64"),
        (lambda key, public: public.allowed, "must return one integer.*shape \\(3,\\) and type bool"),
    ],
    ids=["if", "int", "numpy", "float", "vector"],
)
def test_a_policy_that_cannot_be_compiled_is_told_so(act, sentence):
    process = Process.of(Task(two_binary_sensors(), Confidence(0.9), horizon=3))
    with pytest.raises(InputError, match=sentence):
        simulate(process, act, 10, seed=0)


RECORDED = two_binary_sensors()
STREAMS = readings_of(RECORDED, places_of(RECORDED), people=2, length=100)
# Sensor 0 is thought to tell the secret; as recorded it says anything, so its second reading can contradict the first.
BELIEVED = np.array([[[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2], [[[0.5, 0.5]] * 2] * 2])


def replayed_codes() -> Process:
    model = replace(RECORDED, channel=BELIEVED)
    codes = jnp.asarray(STREAMS.values[:, :, 0].astype(int))
    process = Process.of(Task(model, Confidence(1.0), enforcement=PaperCost(), horizon=8))
    return process.reading_from(FromCodes(codes, episodes_of(STREAMS, 8)))


def replayed_readings() -> Process:
    prior, places = jnp.asarray(RECORDED.prior), jnp.asarray(places_of(RECORDED))
    return Process.over(NearestSymbolFilter(prior, jnp.asarray(BELIEVED), places), STREAMS, Information(5.0), horizon=8)


@pytest.mark.parametrize("process", [replayed_codes, replayed_readings])
def test_an_impossible_reading_is_refused_and_never_becomes_a_belief(process):
    with pytest.raises(InputError, match=r"Step [1-9]: sensor 0 gave reading \d+, which has probability zero"):
        evaluate(process(), Heedless(), 200)


@pytest.mark.parametrize("process", [replayed_codes, replayed_readings])
def test_compiled_play_stops_at_an_impossible_reading(process):
    moments = heedless_play(process())
    assert np.isfinite(moments.after.belief).all()
    assert np.asarray(moments.terminated).any()  # Heedless never stops by itself.


def test_a_learned_belief_that_is_no_number_is_refused():
    provider = LstmFilter(jnp.asarray(RECORDED.prior), 2, 1, jax.random.key(0))
    broken = eqx.tree_at(lambda p: p.head.weight, provider, provider.head.weight * jnp.nan)
    process = Process.over(broken, STREAMS, Confidence(0.9), horizon=8)
    with pytest.raises(InputError, match="Step 0: sensor 0 gave reading"):
        evaluate(process, Heedless(), 200)
