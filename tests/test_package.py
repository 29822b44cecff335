"""What a wheel holds: all that help and errors name, and the mark that says that types are there."""

import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return set(zipfile.ZipFile(wheel).namelist())


def test_types_are_said_to_be_there(names):
    assert "reticent/py.typed" in names


def test_every_page_is_in_the_wheel_and_those_that_are_named_exist(names):
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert {f"reticent/docs/{page}.md" for page in pages} <= names
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    # NAME stands for any.
    named = set(re.findall(r"reticent docs (\w+)`", source)) | set(re.findall(r"docs/(\w+)\.md", source))
    assert {"recordings", "traces", "ledger"} <= named <= pages | {"NAME"}


def test_who_stops_reading_ends_a_command_in_silence():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nowhere:
        command = [sys.executable, "-m", "reticent", "docs", "recordings"]
        ended = subprocess.run(command, stdout=nowhere, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 128 + signal.SIGPIPE
    assert ended.stderr == b""
