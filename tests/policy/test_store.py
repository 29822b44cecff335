import json

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

from reticent.errors import InputError
from reticent.policy.actor import Actor, Features
from reticent.policy.lookahead import lookahead_policy, value_network
from reticent.policy.network import Network, network_arrays
from reticent.policy.saved import policy_file, policy_of
from reticent.policy.store import HEADER, PolicyFile
from reticent.problem.array_file import read_arrays
from reticent.problem.bound import Confidence, Information
from reticent.problem.enforcement import Coarsen
from reticent.problem.synthetic import two_binary_sensors
from reticent.problem.task import Task
from reticent.process.process import Process


@pytest.fixture
def actor():
    process = Process.of(Task(two_binary_sensors(), Information(0.2)))
    features = Features(process, "rich")
    return Actor(Network(features.size, 3, 8, jax.random.key(5)), features, greedy=False)


def stored(actor, **changes):
    fields = {
        "kind": "actor",
        "made_for": Task(two_binary_sensors(), Information(0.2)),
        "settings": {"inputs": "rich", "width": 8, "greedy": False},
        "arrays": network_arrays(actor.network),
        "provenance": {"seed": 0},
    }
    return PolicyFile(**{**fields, **changes})


def test_a_policy_file_needs_nothing_else(actor, tmp_path):
    stored(actor).save(tmp_path / "p.safetensors")
    file = PolicyFile.load(tmp_path / "p.safetensors")
    _, again = policy_of(file)
    assert file.task.bound == Information(0.2)
    assert jax.tree.all(jax.tree.map(np.array_equal, again, actor))
    assert [path.name for path in tmp_path.iterdir()] == ["p.safetensors"]


def test_damaged_and_foreign_files_are_refused(actor, tmp_path):
    path = tmp_path / "p.safetensors"
    with pytest.raises(InputError, match="There is no policy file"):
        PolicyFile.load(path)
    path.write_bytes(b"not a policy at all")
    with pytest.raises(InputError, match="damaged or not a policy file"):
        PolicyFile.load(path)
    save_file({"x": np.zeros(3)}, path)
    with pytest.raises(InputError, match="no reticent header"):
        PolicyFile.load(path)
    save_file({"x": np.zeros(3)}, path, {HEADER: json.dumps({"format": "reticent-policy-99"})})
    with pytest.raises(InputError, match="not of the format"):
        PolicyFile.load(path)
    stored(actor).save(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="damaged or not a policy file"):
        PolicyFile.load(path)
    header = json.loads(_header(actor, tmp_path))
    del header["task"]["bound"]
    save_file(network_arrays(actor.network), path, {HEADER: json.dumps(header)})
    with pytest.raises(InputError, match=r"header of .* is damaged"):
        PolicyFile.load(path)


def _header(actor, tmp_path):
    stored(actor).save(tmp_path / "good.safetensors")
    return read_arrays(tmp_path / "good.safetensors", "policy file")[1][HEADER]


def test_arrays_must_fit_the_header(actor):
    with pytest.raises(InputError, match="its header calls for"):
        policy_of(stored(actor, settings={"inputs": "rich", "width": 9, "greedy": False}))
    with pytest.raises(InputError, match="kind 'oracle'"):
        policy_of(stored(actor, kind="oracle"))


@pytest.mark.parametrize(
    "change",
    [{"inputs": "foo"}, {"width": -1}, {"width": 8.0}, {"width": 10**9}, {"greedy": "false"}],
    ids=str,
)
def test_settings_must_describe_a_network(actor, change):
    with pytest.raises(InputError, match="do not describe a network"):
        policy_of(stored(actor, settings={"inputs": "rich", "width": 8, "greedy": False, **change}))


def test_numbers_must_be_finite(actor, tmp_path):
    arrays = {name: array * np.float32("nan") for name, array in network_arrays(actor.network).items()}
    with pytest.raises(InputError, match="not finite"):
        policy_of(stored(actor, arrays=arrays))
    with pytest.raises(InputError, match="training diverged"):
        stored(actor, arrays=arrays).save(tmp_path / "p.safetensors")


@pytest.mark.parametrize(("field", "value"), [("horizon", 1.5), ("horizon", 10**30), ("bound", []), ("enforcement", 3)])
def test_a_task_in_the_header_is_checked(actor, tmp_path, field, value):
    header = json.loads(_header(actor, tmp_path))
    header["task"][field] = value
    save_file(network_arrays(actor.network), tmp_path / "p.safetensors", {HEADER: json.dumps(header)})
    with pytest.raises(InputError):
        PolicyFile.load(tmp_path / "p.safetensors")


def test_a_missing_folder_is_a_sentence(actor, tmp_path):
    with pytest.raises(InputError, match="Cannot write"):
        stored(actor).save(tmp_path / "nowhere" / "p.safetensors")


@pytest.mark.parametrize("kernels", ["label", "value"])
def test_a_lookahead_policy_comes_back_with_its_process(kernels, tmp_path):
    task = Task(two_binary_sensors(), Confidence(0.7), enforcement=Coarsen())
    process = Process.of(task)
    policy = lookahead_policy(process, value_network(process, 8, jax.random.key(5)), kernels)
    path = tmp_path / "p.safetensors"
    policy_file(policy, task, {"seed": 0}).save(path)
    again_process, again = policy_of(PolicyFile.load(path))
    assert jax.tree.all(jax.tree.map(np.array_equal, again, policy))
    assert again_process.enforcement.rule.name == kernels  # type: ignore[attr-defined]


@pytest.mark.parametrize("settings", [{"width": 8}, {"width": 8, "kernels": "other"}, {"width": 0, "kernels": "label"}])
def test_settings_of_a_lookahead_policy_are_checked(actor, settings):
    with pytest.raises(InputError, match="do not describe a value"):
        policy_of(stored(actor, kind="lookahead", settings=settings))


def test_value_kernels_need_coarsening(actor):
    with pytest.raises(InputError, match="asks for value kernels, but enforces by 'mask'"):
        policy_of(stored(actor, kind="lookahead", settings={"width": 8, "kernels": "value"}))
