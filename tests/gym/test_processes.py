"""From the options of an environment to the process that is played."""

import json
from dataclasses import replace

import gymnasium
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from gymnasium.utils.env_checker import check_env

import reticent.gym  # noqa: F401  (registers the environments)
from reticent.belief.filter import NearestSymbolFilter
from reticent.data.load import Source, load
from reticent.data.readings import readings
from reticent.errors import InputError
from reticent.fit.model import fit_model
from reticent.gym.environment import ReleaseEnv
from reticent.gym.processes import problem_process, recordings_process, synthetic_process, task_of
from reticent.problem.bound import Confidence, Unbounded
from reticent.problem.enforcement import Mask, PaperCost
from reticent.problem.objective import Objective
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.source import FromCodes, FromReadings
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()
STREAMS = readings_of(MODEL, places_of(MODEL), people=4, length=60)
BAYES = NearestSymbolFilter(jnp.asarray(MODEL.prior), jnp.asarray(MODEL.channel), jnp.asarray(places_of(MODEL)))
# As if it had been fitted to three of the four people: what a sensor reads is its code.
CODEBOOK = {"mean": [[0.0], [0.0]], "deviation": [[1.0], [1.0]], "centres": places_of(MODEL).tolist()}
FITTED = replace(MODEL, fitted={"codebook": CODEBOOK, "people": ["person 0", "person 2", "person 3"]})


def test_options_say_bound_prices_and_horizon():
    prices = Objective(time_cost=0.5)
    process = synthetic_process(confidence=0.9, enforce=PaperCost(), objective=prices, horizon=30)
    assert isinstance(process.enforcement, PaperCost)
    assert (process.bound.number, process.objective.time_cost, process.horizon) == (0.9, 0.5, 30)
    assert isinstance(synthetic_process(information=1.0).enforcement, Mask)
    assert problem_process(MODEL, confidence=0.8).sensors == 2


def test_tasks_and_processes_are_taken_as_they_are():
    task = Task(MODEL, Confidence(0.8))
    process = Process.of(task)
    assert problem_process(process) is process
    assert problem_process(task).bound.number == 0.8
    for problem in (task, process):
        with pytest.raises(InputError, match=r"has its own bound and prices: leave out \['confidence'\]"):
            problem_process(problem, confidence=0.7)


@pytest.mark.parametrize(
    "options", [{}, {"confidence": 0.8, "information": 1.0}, {"confidence": 0.8, "unbounded": True}]
)
def test_there_is_one_bound(options):
    with pytest.raises(InputError, match="Give one bound"):
        gymnasium.make("reticent/Synthetic-v0", **options)


def test_no_bound_has_a_name():
    assert task_of(MODEL, unbounded=True).bound == Unbounded()
    with pytest.raises(InputError, match="at most 1"):
        task_of(MODEL, confidence=2.0)


def test_recorded_codes_are_replayed_to_a_fitted_model():
    env = gymnasium.make("reticent/Recordings-v0", data=STREAMS, problem=FITTED, information=0.5, horizon=5).unwrapped
    assert isinstance(env, ReleaseEnv)
    check_env(env)
    env.reset(seed=0)
    assert env._play is not None
    row = int(env._play.state.hidden.row)  # type: ignore[arg-type]
    said = [env.step(action)[4]["symbol"] for action in (0, 1, 0)]
    # Of those whom the model was fitted to: what that sensor said, moment after moment.
    own = STREAMS.of((0, 2, 3))
    assert said == [own.values[row + i, action, 0] for i, action in enumerate((0, 1, 0))]
    assert env.process.source.codes.shape == own.values.shape[:2]  # type: ignore[attr-defined]


def test_raw_readings_are_replayed_to_a_learned_provider():
    process = recordings_process(STREAMS, provider=BAYES, confidence=0.8)
    assert isinstance(process.source, FromReadings)
    assert process.horizon == 10
    env = ReleaseEnv(process)
    check_env(gymnasium.make("reticent/Recordings-v0", data=STREAMS, provider=BAYES, confidence=0.8).unwrapped)
    env.reset(seed=0)
    *_, info = env.step(1)
    assert 0 <= info["symbol"] < len(STREAMS.person)
    with pytest.raises(InputError, match="needs a finite model"):
        ReleaseEnv(process, inputs="rich")


@pytest.mark.slow
def test_recordings_are_found_as_reticent_fit_has_left_them(tmp_path):
    rng = np.random.default_rng(0)
    for person in range(3):
        for useful, secret in np.ndindex(2, 2):
            values = {"x": rng.normal(useful, 0.7, size=200), "y": rng.normal(secret, 0.7, size=200)}
            labels = {"who": f"p{person}", "posture": f"u{useful}", "smokes": f"s{secret}"}
            pl.DataFrame({**labels, **values}).write_parquet(tmp_path / f"{person}{useful}{secret}.parquet")
    map_ = tmp_path / "mine.toml"
    map_.write_text(
        'files = "*.parquet"\nperson = "who"\nrate = 10\n[sensors]\narm = ["x"]\nleg = ["y"]\n'
        '[useful]\ncolumn = "posture"\n[secret]\ncolumn = "smokes"\n'
    )
    recorded = readings(load(Source("table", tmp_path, map=map_)))
    model = fit_model(recorded.of((0, 1)), codes=4)
    assert model.fitted is not None
    model.fitted["recordings"] = {"name": "table", "secret": "gender", "unit": "right arm", "place": "wrist"}
    problem = tmp_path / "mine.json"
    problem.write_text(json.dumps(model.to_json()))
    env = gymnasium.make(
        "reticent/Recordings-v0", data=str(tmp_path), problem=str(problem), map=str(map_), confidence=0.7, horizon=4
    ).unwrapped
    check_env(env)
    assert isinstance(env, ReleaseEnv)
    assert isinstance(env.process, Process)
    assert isinstance(env.process.source, FromCodes)
    assert len(env.process.source.codes) == len(recorded.of((0, 1)).person)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"data": STREAMS}, "Give either problem"),
        ({"data": STREAMS, "problem": FITTED, "provider": BAYES}, "Give either problem"),
        ({"data": "folder", "provider": BAYES}, "data must be readings"),
        ({"data": "folder", "problem": FITTED}, "`reticent fit` has made"),
        ({"data": STREAMS, "problem": MODEL}, "no recordings here"),
        ({"data": STREAMS, "problem": replace(FITTED, sensors=("x", "y"))}, "unlike the model"),
        ({"data": STREAMS, "problem": FITTED, "horizon": 61}, "has 61 readings in a row"),
    ],
)
def test_recordings_that_do_not_fit_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        recordings_process(**options, confidence=0.8)
