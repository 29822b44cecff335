"""Sweeps on Ray, as a user starts them: nodes and drivers that die cost time, and nothing else."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import polars as pl
import pytest

from reticent.problem.synthetic import two_binary_sensors

# Ray forks to start its nodes, which execute other programs at once: JAX's threads in this process do no harm there.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")]

SPEC = """problems = ["small.json"]
confidence = [0.65, 0.7, 0.8]
methods = ["value-iteration"]
seeds = 2
rounds = 15
episodes = 2_000
"""
CELLS = 6
# Where numbers of one cell may differ from run to run.
CLOCKS = ("time", "make_seconds", "evaluate_seconds")
MARK = "RETICENT_TEST"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "small.json").write_text(json.dumps(two_binary_sensors().to_json()))
    (tmp_path / "six.toml").write_text(SPEC)
    return tmp_path


def start(folder: Path, out: str, *words: str, mark: str = "") -> subprocess.Popen:
    command = [sys.executable, "-m", "reticent", "sweep", "six.toml", "--out", out, "--json", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env={**os.environ, MARK: mark}, **pipes)


def finished(driver: subprocess.Popen, undisturbed: bool = True) -> dict:
    out, err = driver.communicate(timeout=600)
    assert driver.returncode == 0, err
    if undisturbed:
        # What the sweep says, and nothing of Ray.
        first, *lines = err.splitlines()
        assert first == f"{CELLS} cells; a line for each when it is done."
        assert all(line.startswith(("done  ", "kept  ")) for line in lines), err
    return json.loads(out)


def parts(out: Path) -> dict[Path, int]:
    """Files of finished cells, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in (out / "results").glob("*.parquet")}


def wait_for_parts(driver: subprocess.Popen, out: Path) -> dict[Path, int]:
    while not (there := parts(out)):
        assert driver.poll() is None, driver.communicate()[1]
        time.sleep(0.02)
    return there


def numbers(out: Path) -> pl.DataFrame:
    return pl.read_parquet(out / "results" / "*.parquet").drop(CLOCKS).sort("limit", "seed")


def marked(mark: str) -> list[str]:
    """Processes that were started, by whomever, under a driver with this mark."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def gone(mark: str) -> bool:
    """Whether all of them end soon."""
    deadline = time.monotonic() + 60
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.2)
    return not marked(mark)


def runs_a_cell(raylet: int) -> bool:
    """Whether a worker of this node is in the middle of one: Ray names processes after what they do."""
    workers = Path(f"/proc/{raylet}/task/{raylet}/children").read_text().split()
    titles = [Path(f"/proc/{worker}/cmdline") for worker in workers]
    return any(title.exists() and title.read_text().startswith("ray::_run_here") for title in titles)


@pytest.fixture
def cluster(monkeypatch):
    """A head that computes nothing, and two nodes of one core each."""
    for name, value in {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}.items():
        monkeypatch.setenv(name, value)
    mark = uuid4().hex
    monkeypatch.setenv(MARK, mark)
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        yield cluster, [cluster.add_node(num_cpus=1) for _ in range(2)]
    finally:
        cluster.shutdown()
    assert gone(mark)


def test_a_node_dies_and_the_sweep_finishes_with_the_same_numbers(folder, cluster):
    nodes, [_, doomed] = cluster
    driver = start(folder, "there", "--on", "ray", "--address", nodes.address, mark=os.environ[MARK])
    before = wait_for_parts(driver, folder / "there")
    [raylet] = doomed.all_processes["raylet"]
    while not runs_a_cell(raylet.process.pid):
        assert driver.poll() is None
    nodes.remove_node(doomed, allow_graceful=False)
    assert len(parts(folder / "there")) < CELLS
    record = finished(driver, undisturbed=False)
    assert (record["cells"], record["new"]) == (CELLS, CELLS)
    there = numbers(folder / "there")
    assert len(there) == len(there.unique(["limit", "seed"])) == CELLS
    # What was there before is what was written then: no cell was saved twice.
    assert before.items() <= parts(folder / "there").items()
    finished(start(folder, "here"))
    assert there.equals(numbers(folder / "here"))


def test_an_interrupted_driver_goes_on_and_leaves_no_process_behind(folder):
    mark = uuid4().hex
    driver = start(folder, "there", "--on", "ray", mark=mark)
    wait_for_parts(driver, folder / "there")
    assert any("raylet" in process for process in marked(mark))
    driver.send_signal(signal.SIGINT)
    _, err = driver.communicate(timeout=120)
    assert driver.returncode == 128 + signal.SIGINT
    assert "run the same command to continue" in err
    assert "Traceback" not in err
    assert gone(mark)
    kept = parts(folder / "there")
    assert 0 < len(kept) < CELLS
    record = finished(start(folder, "there", "--on", "ray", mark=mark))
    assert (record["cells"], record["new"]) == (CELLS, CELLS - len(kept))
    assert kept.items() <= parts(folder / "there").items()
    assert len(numbers(folder / "there")) == CELLS
    assert gone(mark)
