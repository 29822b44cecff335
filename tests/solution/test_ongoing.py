"""A problem that goes on, from task to file and back, by the front door."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import reticent as rt
from reticent.audit.moving_days import day_table, traces_of_days
from reticent.audit.trace_files import MovingTraceFile, read_any_traces
from reticent.evaluate.lock_up import lock_up
from reticent.policy.heuristics import InformationGain
from reticent.policy.ongoing import EverySteps, LongRunLookahead
from reticent.policy.policy import NEVER, RandomSensor
from reticent.policy.store import HEADER, PolicyFile
from reticent.problem.array_file import read_arrays, write_arrays
from reticent.problem.synthetic import tells_useful, two_binary_sensors
from tests.sent import highest_posteriors

MOVES = {"secret": [[0.9, 0.1], [0.1, 0.9]], "useful": [[0.8, 0.2], [0.2, 0.8]]}
TASK = rt.Monitoring(two_binary_sensors().moving(MOVES), rt.Confidence(0.7), horizon=24)


@pytest.fixture(scope="module")
def process():
    return rt.OngoingProcess(TASK)


POLICIES = {
    "cheapest step": rt.CheapestStep,
    "long run": lambda process: LongRunLookahead(process, jnp.asarray(2.0), jnp.asarray(0.5)),
    "every third step": lambda process: EverySteps(jnp.asarray(1), jnp.asarray(3)),
    "random sensor": lambda process: RandomSensor(jnp.asarray(NEVER)),
    "random sensor until sure": lambda process: RandomSensor(jnp.asarray(0.7)),
    "information gain": lambda process: InformationGain(process, jnp.asarray(0.5), jnp.asarray(0.9)),
}


@pytest.mark.parametrize("name", POLICIES)
def test_baselines_come_back_from_their_files(name, process, tmp_path):
    solution = rt.Solution.of(TASK, POLICIES[name](process))
    solution.save(tmp_path / "p.safetensors")
    again = rt.load(tmp_path / "p.safetensors")
    assert isinstance(again, rt.OngoingSolution)
    ours, theirs = solution.simulate(3, 0), again.simulate(3, 0)
    assert np.array_equal(ours.action, theirs.action)
    assert np.array_equal(ours.symbol, theirs.symbol)
    assert ours.sent.any()


def test_an_agent_comes_back_with_task_and_kernels(tmp_path):
    task = replace(TASK, enforcement=rt.Coarsen(rt.QuadraticKernels()), slots=60)
    solution = rt.solve(task, "ppo", steps=64, environments=8, rollout=4, width=8)
    solution.save(tmp_path / "p.safetensors")
    again = rt.load(tmp_path / "p.safetensors")
    assert isinstance(again, rt.OngoingSolution)
    assert again.task.enforcement == task.enforcement
    assert (again.task.slots, again.task.horizon, again.task.bound) == (60, 24, task.bound)
    assert np.array_equal(again.task.model.dynamics, task.model.dynamics)
    assert np.array_equal(again.simulate(3, 1).action, solution.simulate(3, 1).action)
    assert again.made["method"] == "ppo"


def test_the_bound_on_bits_within_a_window_is_kept_in_the_file(tmp_path):
    task = rt.Monitoring(TASK.model, rt.Information(0.3), window=5, horizon=10)
    rt.Solution.of(task, RandomSensor(jnp.asarray(NEVER))).save(tmp_path / "p.safetensors")
    assert PolicyFile.load(tmp_path / "p.safetensors").monitoring.window == 5


def test_policies_for_the_other_kind_of_problem_are_refused(process, tmp_path):
    path = tmp_path / "p.safetensors"
    rt.Solution.of(TASK, rt.CheapestStep(process)).save(path)
    with pytest.raises(rt.InputError, match="for a problem that goes on, and here one for a problem with a stop"):
        _ = PolicyFile.load(path).task
    with pytest.raises(rt.InputError, match="keeps its bound as it was made to"):
        rt.load(path, rt.Withhold())
    still = rt.Task(two_binary_sensors(), rt.Information(0.2))
    with pytest.raises(rt.InputError, match="for a problem with a stop, and here one that goes on"):
        _ = PolicyFile("actor", still, {}, {}, {}).monitoring


class Silent(rt.Policy):
    def act(self, key, public):
        return jnp.asarray(public.allowed.size - 1)


def test_a_policy_of_your_own_is_evaluated_but_fits_no_file(tmp_path):
    solution = rt.Solution.of(TASK, Silent())
    assert solution.evaluate(2).releases.value == 0
    with pytest.raises(rt.InputError, match="but not a Silent"):
        solution.save(tmp_path / "p.safetensors")


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        ("every-steps", {"sensor": 9, "period": 1}, "do not name a sensor"),
        ("random-sensor", {"threshold": "x"}, "do not name a threshold"),
        ("information-gain", {"kappa": None}, "no weight 'kappa'"),
        ("oracle", {}, "does not know"),
        ("cheapest-step", {"kernels": {"value": {}}}, "one rule for kernels"),
    ],
)
def test_damaged_settings_are_refused(kind, settings, sentence, process, tmp_path):
    path = tmp_path / "p.safetensors"
    rt.Solution.of(TASK, rt.CheapestStep(process)).save(path)
    header = json.loads(read_arrays(path, "policy file")[1][HEADER])
    header["kind"], header["settings"] = kind, {"kernels": {"label": {}}, **settings}
    write_arrays(path, {}, {HEADER: json.dumps(header)})
    with pytest.raises(rt.InputError, match=sentence):
        rt.load(path)


def test_methods_and_discounts_are_checked():
    with pytest.raises(rt.InputError, match="one of ppo, a2c, long-run, lookahead, but is 'tree'"):
        rt.solve(TASK, "tree")  # type: ignore[call-overload]
    with pytest.raises(rt.InputError, match="The discount is 1"):
        rt.solve(TASK, "ppo", discount=1.0)
    with pytest.raises(rt.InputError, match="no options, so none is called 'steps'"):
        rt.solve(TASK, "lookahead", steps=3)


def test_what_was_sent_is_in_the_traces(process, tmp_path):
    """An outsider finds the same likelihoods from the file alone."""
    solution = rt.Solution.of(TASK, RandomSensor(jnp.asarray(NEVER)))
    solution.evaluate(3, traces=tmp_path / "t.parquet")
    days = solution.simulate(3, 1)
    file = read_any_traces(tmp_path / "t.parquet", 100)
    assert isinstance(file, MovingTraceFile)
    told = file.traces.likelihood
    assert told is not None
    assert np.array_equal(file.traces.sensor >= 0, days.sent.reshape(-1))
    # Of a symbol, what the model's channel and the public chances make of it: equal up to a factor.
    ours = days.likelihood.reshape(told.shape)
    assert np.allclose(ours / ours.sum((1, 2), keepdims=True), told / told.sum((1, 2), keepdims=True), atol=1e-12)
    assert highest_posteriors(TASK.model, told[:24]).smoother < 0.7
    table = day_table(TASK, days)
    assert (table["symbol"].is_null() == (table["sensor"] == "silent")).all()
    assert traces_of_days(TASK, days).episodes == 3


def test_pages_of_a_day_and_of_its_audit(process, tmp_path):
    solution = rt.Solution.of(TASK, rt.CheapestStep(process))
    found = solution.evaluate(8, page=tmp_path / "day")
    page = (tmp_path / "day" / "report.html").read_text()
    assert found.silence in page.replace("&#39;", "'")
    assert f"{100 * found.highest_smoother:.2f} %" in page
    assert (tmp_path / "day" / "figures" / "silence.png").stat().st_size > 1000
    audit = solution.audit(8, quick=True, page=tmp_path / "audit")
    assert audit.checks[0].passed
    assert audit.limit == 0.7
    assert audit.verdict[1] in (tmp_path / "audit" / "report.html").read_text()


def test_directed_information_is_no_less_than_that_about_the_present(process):
    found = rt.monitor(process, rt.CheapestStep(process), days=64)
    assert found.directed_bits is not None
    # Chain rule: I(S^t; Y_t | past) >= I(S_t; Y_t | past), as means; the margin is the estimate's own interval.
    assert found.directed_bits.high > found.spent_bits.low > 0
    assert sum(part["bits"] for part in found.course) / 12 == pytest.approx(found.spent_bits.value)


def test_a_chain_that_is_too_slow_is_told():
    """S is told by each reading, moves rarely, and there is room for one open moment only."""
    moves = {"secret": [[0.97, 0.03], [0.03, 0.97]], "useful": [[0.5, 0.5], [0.5, 0.5]]}
    slow = rt.Monitoring(two_binary_sensors().moving(moves), rt.Confidence(0.7), horizon=48, slots=1)
    sentence = lock_up(rt.OngoingProcess(slow))
    assert sentence is not None
    assert "Choose a larger bound" in sentence
    fast = rt.Monitoring(tells_useful().moving(MOVES), rt.Confidence(0.8), horizon=48)
    assert lock_up(rt.OngoingProcess(fast)) is None
