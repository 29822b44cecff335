"""An outsider recomputes the provider's belief from what was released, with numpy and the published model alone."""

import json

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

from reticent.audit.trace_files import HEADER, write_traces
from reticent.policy.heuristics import OneStepLookahead
from reticent.policy.policy import RandomSensor
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import Coarsen, Withhold
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import simulate_traced

EPISODES = 8_192
TASKS = {
    "withhold": Task(synthetic(), Confidence(0.7), enforcement=Withhold(), horizon=8),
    "coarsen": Task(synthetic(), Confidence(0.6), enforcement=Coarsen(), horizon=8),
    "mask": Task(synthetic(), Information(0.8), horizon=8),
}


def recomputed(path):
    """Beliefs after each row, and the table; reads nothing but the file."""
    table = pl.read_parquet(path)
    problem = json.loads(pl.read_parquet_metadata(path)[HEADER])["task"]["problem"]
    prior, channel = np.array(problem["prior"]), np.array(problem["channel"])
    sensor = (
        table["sensor"].cast(pl.String).replace_strict(problem["sensors"], range(len(problem["sensors"])), default=-1)
    )
    beliefs, belief = [], prior
    for step, a, chances in zip(table["step"], sensor, table["chances"].to_list(), strict=True):
        belief = prior if step == 0 else belief
        if a >= 0:
            belief = belief * (channel[a] @ np.array(chances))
            belief = belief / belief.sum()
        beliefs.append(belief)
    return np.array(beliefs), table


def spent_bits(task, beliefs, table):
    """What each episode has spent: the sum of I(S; Z) of the sensors that spoke, each at the belief before it."""
    sensors = table["sensor"].cast(pl.String).to_numpy()
    spent = np.zeros(table["episode"].n_unique())
    rows = zip(table["episode"], table["step"], sensors, strict=True)
    for row, (episode, step, sensor) in enumerate(rows):
        before = task.model.prior if step == 0 else beliefs[row - 1]
        if sensor != "stop":
            joint = np.einsum("su,suz->sz", before, task.model.channel[task.model.sensors.index(sensor)])
            independent = joint.sum(1, keepdims=True) * joint.sum(0)
            spent[episode] += (joint[joint > 0] * np.log2(joint[joint > 0] / independent[joint > 0])).sum()
    return spent


@pytest.fixture(
    scope="module", params=[*(pytest.param(rule, marks=pytest.mark.slow) for rule in ("withhold", "coarsen")), "mask"]
)
def traced(request, tmp_path_factory):
    task = TASKS[request.param]
    process = Process.of(task)
    policy = (
        OneStepLookahead(process, jnp.asarray(2.0)) if request.param == "coarsen" else RandomSensor(jnp.asarray(0.8))
    )
    path = tmp_path_factory.mktemp("traces") / "t.parquet"
    records, sent = simulate_traced(process, policy.act, EPISODES, seed=3)
    write_traces(path, task, process, records, sent)
    return task, records, *recomputed(path)


def test_the_outsider_finds_the_same_belief(traced):
    _, records, beliefs, table = traced
    last = table.group_by("episode", maintain_order=True).len()["len"].cum_sum().to_numpy() - 1
    assert np.array_equal(table["episode"].to_numpy()[last], np.arange(EPISODES))
    assert np.abs(beliefs[last] - records.belief).max() < 1e-12


def test_no_belief_of_the_outsider_reaches_the_bound(traced):
    task, records, beliefs, table = traced
    if isinstance(task.bound, Confidence):
        assert beliefs.sum(2).max() < task.bound.limit
        # The bound is used: somebody comes near it.
        assert beliefs.sum(2).max() > task.bound.limit - 0.01
    else:
        spent = spent_bits(task, beliefs, table)
        # The bound is used: somebody spends most of it.
        assert 0.8 * task.bound.bits < spent.max() < task.bound.bits
    assert not records.violated.any()


def test_the_belief_is_calibrated(traced):
    """Among moments at which a secret has belief about p, it is the truth about p of the time."""
    task, _, beliefs, table = traced
    # One moment per episode, so that moments are independent.
    last = table.group_by("episode", maintain_order=True).len()["len"].cum_sum().to_numpy() - 1
    believed = beliefs[last].sum(2)
    true = table["secret"].cast(pl.String).to_numpy()[last, None] == np.array(task.model.secrets)
    compared = 0
    for low, high in zip(np.linspace(0, 0.9, 10), np.linspace(0.1, 1.0, 10), strict=True):
        inside = (believed >= low) & (believed < high)
        compared += inside.sum() > 100
        if inside.sum() > 100:
            error = np.sqrt((believed * (1 - believed))[inside].sum()) / inside.sum()
            # Thirty such comparisons in all: 4.5 standard errors leave one false alarm in five thousand.
            assert abs(true[inside].mean() - believed[inside].mean()) < 4.5 * error
    assert compared >= 5


def test_rows_say_what_was_sent(traced):
    task, records, _, table = traced
    stops = table.filter(pl.col("sensor") == "stop")
    assert stops["symbol"].is_null().all()
    assert stops["chances"].is_null().all()
    assert len(table) - len(stops) == records.releases.sum()
    names = {"withhold": {"withheld"}, "coarsen": {f"merged: {u}" for u in task.model.useful}, "mask": set()}
    sent = set(table["symbol"].cast(pl.String).drop_nulls()) - set(task.model.symbols)
    assert sent == names[task.enforcement.name]
