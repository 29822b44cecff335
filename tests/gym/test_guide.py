"""The examples in docs/gym.md run as printed."""

import re
from inspect import signature
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env

from reticent.gym.processes import recordings_process, task_of

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "gym.md").read_text()
FIRST, TRAINING = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.slow
def test_the_first_example_runs_and_passes_gymnasiums_checks():
    names = {}
    exec(compile(FIRST, "docs/gym.md", "exec"), names)
    assert names["env"].observation_space.contains(names["observation"])
    assert names["many"].num_envs == 64
    check_env(names["env"].unwrapped)


@pytest.mark.slow
@pytest.mark.usefixtures("sb3", "less_work")
def test_an_agent_is_trained_and_comes_back_in(capsys):
    shorter = TRAINING
    for much, less in (("200_000", "10_240"), ("100_000", "8_192"), ("20_000", "1_000")):
        assert much in shorter
        shorter = shorter.replace(much, less)
    exec(compile(shorter, "docs/gym.md", "exec"), {})
    told = capsys.readouterr().out
    assert "No policy costs less than 7.34225 (exact" in told
    assert "names the secret correctly" in told


def test_links_exist():
    targets = re.findall(r"\]\(([^)#:]+)\)", GUIDE)
    assert targets
    assert all((DOCS / target).exists() for target in targets)


def test_every_option_is_explained():
    options = {*signature(task_of).parameters, *signature(recordings_process).parameters} - {"model", "options"}
    assert all(f"`{option}`" in GUIDE for option in options)
