"""`reticent serve --config`: a file holds what the command line holds, and the command line wins."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from reticent.cli.configuration import with_configured
from reticent.cli.serve import Serve
from reticent.errors import InputError
from tests.commands import commands
from tests.gateway.parts import write_policy

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "gateway.toml"
        path.write_text(text)
        return path

    return write


def configured(path, *words):
    return with_configured(["serve", *words, "--config", str(path)], Serve.options())


def test_a_file_says_what_the_command_line_does_not(written):
    path = written('rest = 5\nlog_format = "json"\nhome-assistant = false\npage = [8480]\nno-drift-check = true\n')
    words = configured(path, "--rest", "9", "--page=8490")
    assert words[-3:] == ["--log-format", "json", "--no-drift-check"]
    assert words.count("--rest") == 1
    assert "--home-assistant" not in words


def test_without_a_file_nothing_changes():
    assert with_configured(["serve", "a.safetensors"], Serve.options()) == ["serve", "a.safetensors"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rset = 5", "unknown option 'rset'. Did you mean 'rest'?"),
        ("rest = 5 6", "is not TOML"),
        ("rest = {a = 1}", "sets 'rest' to {'a': 1}: give text or a number"),
        ("config = 'other.toml'", "unknown option 'config'"),
    ],
)
def test_a_wrong_file_is_refused(written, text, says):
    with pytest.raises(InputError) as refused:
        configured(written(text))
    assert says in str(refused.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        configured(tmp_path / "none.toml")


def test_options_and_policy_from_a_file_are_checked(monkeypatch, capsys, tmp_path, written):
    policy = write_policy(tmp_path / "policy.safetensors")
    reticent = commands(monkeypatch, capsys)
    path = written(f"policy = {json.dumps(str(policy))}\nstale = 10\n")
    code, out, err = reticent("serve", "--config", str(path), "--check")
    assert (code, out) == (0, "")
    assert "ready to serve policy" in err
    assert (tmp_path / "policy.ledger.db").exists()
    code, _, err = reticent("serve", "--config", str(path), "--check", "--stale", "-1")
    assert code == 2
    assert "--stale above 0" in err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
@pytest.mark.parametrize("words", [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]])
def test_alert_rules(words):
    done = subprocess.run(["promtool", *words], cwd=DEPLOY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
