"""The demo: what ships with the package, what is played with it, the page, and the command."""

import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from reticent import cli
from reticent.audit.traces import Names, Traces
from reticent.demo import still as demo
from reticent.demo.moving import Effort as Hours
from reticent.demo.moving import moving
from reticent.demo.recorded import PEOPLE, people, problem, source
from reticent.demo.session import sessions
from reticent.demo.still import Effort, still
from reticent.problem.codebook import Codebook
from reticent.report.demo import rows, write_demo_report
from tests.demo.make_data import CODES, LEFT_OUT, SOURCE

SMALL = Effort(episodes=300, bounds=(0.55,), shown=0.6)


def test_what_ships_is_of_people_whom_the_model_was_not_fitted_to_and_names_its_licence():
    model = problem()
    assert model.fitted is not None
    recorded = people(model)
    assert recorded.people == LEFT_OUT
    assert model.fitted is not None
    assert not set(recorded.people) & set(model.fitted["people"])
    # Each of three people did each of four activities for five minutes.
    assert len(recorded.values) == 3 * 4 * 300
    assert np.bincount(2 * recorded.secret + recorded.useful).tolist() == [900] * 4
    assert source() == SOURCE == model.fitted["source"]
    assert "CC BY 4.0" in source()["licence"]


def test_a_reading_at_the_centre_of_a_code_has_that_code():
    model = problem()
    codebook = Codebook.of(model)
    assert max(codebook.sizes) == CODES
    again = codebook.codes(people(model).values)
    # Of the first person, standing, second by second, as the file says.
    streams = json.loads(PEOPLE.read_text())["streams"]
    letters = ["".join("abcdefghijklmnopqrstuvwxyz"[code] for code in own) for own in again[:300].T]
    assert letters == streams[0]["codes"]


def test_a_session_shows_both_beliefs_computed_by_hand():
    model = problem()
    codes = np.array([[3, 5, 1, 0]] * 4)
    # Of every pair one episode that sends the code of sensor 1 as it is, and then stops.
    likelihood = np.tile(model.channel[1, :, :, 5], (4, 1, 1, 1))
    secret, useful = np.indices((2, 2)).reshape(2, -1)
    traces = Traces(
        sensor=np.ones((4, 1), int),
        symbol=np.full((4, 1), 5),
        reading=None,
        stopped=np.ones(4, bool),
        person=np.zeros(4, int),
        secret=secret,
        useful=useful,
        names=Names(model.sensors, model.symbols, model.secrets, model.useful),
        likelihood=likelihood,
    )
    found = sessions(model, codes, np.zeros(4, int), traces, ("5",))
    assert [(each["secret"], each["useful"]) for each in found] == [(s, u) for s in model.secrets for u in model.useful]
    joint = model.prior * model.channel[1, :, :, 5]
    [before, after] = found[0]["steps"]
    assert before["guarded"]["secret"] == model.prior.sum(1).tolist()
    assert (after["sensor"], after["measured"], after["sent"]) == (model.sensors[1], "code 5", "code 5")
    np.testing.assert_allclose(after["guarded"]["useful"], joint.sum(0) / joint.sum(), rtol=1e-12)
    assert after["open"] == after["guarded"]


class Ids(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.outside = set(), []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.add(attrs.get("id"))
        self.outside += [attrs[name] for name in ("src",) if name in attrs]
        self.outside += [attrs["href"]] if tag == "link" else []


@pytest.mark.slow
def test_the_story_and_its_page(tmp_path):
    told = []
    found = still(told.append, SMALL)
    assert len(told) == SMALL.parts
    unprotected, *guarded = found["rows"]
    assert unprotected["limit"] is None
    assert [row["limit"] for row in guarded] == [0.55, 0.6]
    # Exact, for the model: never reached. Unprotected it is passed by far.
    assert all(row["highest"] < row["limit"] for row in guarded)
    assert unprotected["highest"] > 0.95
    # Estimates over 300 sessions: margins of about three standard errors.
    assert unprotected["secret"]["value"] > 0.75
    assert all(row["secret"]["value"] < 0.7 < 0.8 < row["useful"]["value"] for row in guarded)
    limits = [max(step["guarded"]["secret"]) for each in found["sessions"] for step in each["steps"]]
    assert max(limits) < found["shown"]

    moved = moving(told.append, Hours(hours=1, steps=60))
    (tmp_path / "demo.json").write_text(
        json.dumps({"source": source(), "still": found, "moving": moved, "provenance": {"command": "x"}})
    )
    page = write_demo_report(tmp_path).read_text()
    assert (tmp_path / "figures" / "accuracy.png").stat().st_size > 10_000
    asked = Ids()
    asked.feed(page)
    assert {"accuracy", "hour", "which", "step", "bars"} <= asked.ids
    # It works offline.
    assert asked.outside == []
    assert f"{100 * unprotected['secret']['value']:.0f} %" in page
    assert rows(found)[0]["kept"] == "no protection"


@pytest.mark.slow
def test_where_labels_change_only_the_whole_guard_keeps_every_moment_below_the_bound():
    told = []
    found = moving(told.append, Hours(hours=1, steps=240))
    assert len(told) == 3
    unprotected, present, whole = found["rows"].values()
    # Exact, for the model: filter, smoother and predictions of what was sent.
    assert whole["highest"] < found["limit"] < present["highest"] < unprotected["highest"]
    assert present["highest_now"] < found["limit"]
    hours = found["hour"].values()
    assert all(len(hour[name]) == 240 for hour in hours for name in ("now", "hindsight", "secret"))
    assert max(found["hour"]["whole"]["hindsight"]) <= whole["highest"]
    # The same hour under every guard.
    assert found["hour"]["none"]["secret"] == found["hour"]["whole"]["secret"]


@pytest.mark.slow
def test_the_command_says_what_it_does_and_prints_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "DEFAULT", SMALL)
    monkeypatch.setattr(sys, "argv", ["reticent", "demo"])
    cli.main()
    out, err = capsys.readouterr()
    assert len(out.splitlines()) <= 7 + 8
    assert re.search(r"none +10\.0 +\d\d \[\d\d, \d+\]", out)
    assert re.search(r"at most 60 % +\d\.\d .* 59\.99", out)
    assert re.search(r"\d s  Attacking the guarantee at 55 %, about \d+ s left", err)
    assert max(map(len, out.splitlines()[:-1])) <= 115
    assert (tmp_path / "reticent-demo" / "report.html").exists()
