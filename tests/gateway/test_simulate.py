"""Sensors that are not there say what the model says they would, at the pace that was asked for."""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from reticent.cli.data import What, Where
from reticent.cli.fit import Fit
from reticent.cli.simulate import PaceOptions, Simulate
from reticent.errors import InputError
from reticent.gateway import demo
from reticent.gateway.demo import POLICY, VISITORS, Visitors, demo_model
from reticent.gateway.messages import parse_line, parse_payload
from reticent.gateway.readings import Encoder
from reticent.gateway.runtime import Runtime
from reticent.gateway.sessions import ASSUMPTION
from reticent.gateway.simulate import Drawn, Names, Pace, Recorded, line, play
from reticent.problem.model import read_problem
from reticent.problem.synthetic import synthetic, two_binary_sensors
from tests.gateway.parts import NOON, Place, write_policy

RETICENT = [sys.executable, "-m", "reticent"]


def test_readings_follow_the_model():
    """500 people, 20 moments: shares of each symbol within five deviations of the model's."""
    model, people = two_binary_sensors(), [f"p{i}" for i in range(500)]
    source = Drawn(model, people, seed=1)
    counts = Counter()
    for _ in range(20):
        counts.update((message.sensor, message.symbol) for message in source.moment())
    for sensor, name in enumerate(model.sensors):
        # People with one pair speak 20 times: at most 20 times the variance of independent readings.
        expected = float(np.einsum("su,su->", model.prior, model.channel[sensor, :, :, 1]))
        share = counts[name, "1"] / 10_000
        assert share == pytest.approx(expected, abs=5 * np.sqrt(20 * 0.25 / 10_000))


def test_the_secret_stays_and_the_useful_value_changes():
    source = Drawn(synthetic(), [f"p{i}" for i in range(200)], seed=1)
    secrets, useful = source._secret.copy(), source._useful.copy()
    source.begin()
    assert (source._secret == secrets).all()
    assert 0 < (source._useful == useful).mean() < 1
    source.change("p7", "somebody else")
    assert "somebody else" in {message.subject for message in source.moment()}
    assert "p7" not in {message.subject for message in source.moment()}


@pytest.mark.parametrize("stays", [0.0, 0.25, 1.0])
def test_the_useful_value_stays_as_often_as_was_asked(stays):
    """One of three values, drawn anew, is the same by chance too: within four deviations over 900 people."""
    people = [f"p{i}" for i in range(900)]
    source, expected = Drawn(synthetic(), people, 1, stays), stays + (1 - stays) / 3
    useful = source._useful.copy()
    source.begin()
    together = (source._useful == useful).mean()
    useful = source._useful.copy()
    for who in people:
        source.change(who)
    for share in (together, (source._useful == useful).mean()):
        assert share == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 900))


def test_the_same_seed_says_the_same():
    first, again, other = (list(Drawn(synthetic(), ["ada"], seed).moment()) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_pace():
    sent, waits = [], []
    pace = Pace(interval=1.0, readings=3, pause=60.0, speed=10.0)
    play(Drawn(synthetic(), ["ada", "bob"]), pace, 2, sent.append, waits.append)
    assert [len(messages) for messages in sent] == [6] * 6
    assert waits == [0.1, 0.1, 0.1, 6.0, 0.1, 0.1, 0.1]
    for wrong in ({"speed": 0.0}, {"interval": -1.0}, {"pause": float("nan")}, {"readings": 0}):
        with pytest.raises(InputError, match="--speed"):
            replace(pace, **wrong)


def test_recordings_are_played_stream_by_stream():
    values = np.arange(10 * 2 * 3, dtype=np.float32).reshape(10, 2, 3)
    person, stream = np.array([0] * 6 + [1] * 4), np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 2])
    source = Recorded(values, person, stream, Names(("ada", "bob"), ("arm", "hip"), (3, 2)))
    sent = []
    play(source, Pace(readings=3), None, sent.append, lambda seconds: None)
    rows = [[message.reading for message in messages if message.sensor == "arm"] for messages in sent]
    assert [[values[i, 0].tolist() for i in pair] for pair in ((0, 6), (1, 7), (2, 8))] == [
        [list(reading) for reading in moment] for moment in rows[:3]
    ]
    assert [[message.subject for message in messages] for messages in sent[3:]] == [["ada", "ada"]] * 2
    assert len(sent) == 5
    assert all(len(message.reading) == 2 for messages in sent for message in messages if message.sensor == "hip")


def test_lines_can_be_read():
    for message in Drawn(synthetic(), ["Ada Lovelace"]).moment():
        read = parse_line(line(message, NOON))
        assert (read.subject, read.sensor, read.symbol, read.time) == (
            "Ada Lovelace",
            message.sensor,
            message.symbol,
            NOON,
        )
        assert parse_payload("Ada Lovelace", message.sensor, line(message, NOON, with_place=False)) == read


def test_simulate_into_serve(tmp_path):
    """The pipe that the documentation shows, much faster."""
    policy = write_policy(tmp_path / "policy.safetensors")
    pace = ["--speed", "1000", "--readings", "12", "--episodes", "2", "--subjects", "3"]
    with subprocess.Popen([*RETICENT, "simulate", str(policy), *pace], stdout=-1) as sensors:
        serve = [*RETICENT, "serve", str(policy), "--rest", "0.01"]
        served = subprocess.run(serve, stdin=sensors.stdout, capture_output=True, check=True)
        assert sensors.wait(20) == 0
    told = [json.loads(each) for each in served.stdout.splitlines()]
    assert {each["subject"] for each in told} == {"person 1", "person 2", "person 3"}
    assert b"received 216" in served.stderr
    assert ASSUMPTION.encode() in served.stderr


def test_a_gateway_that_ends_ends_the_sensors(tmp_path):
    pace = ["--speed", "1000", "--pause", "0", "--episodes", "0"]
    with subprocess.Popen([*RETICENT, "simulate", "synthetic", *pace], stdout=-1, stderr=-1) as sensors:
        assert sensors.stdout is not None
        assert sensors.stderr is not None
        assert json.loads(sensors.stdout.readline())["sensor"] == "a0"
        sensors.stdout.close()
        assert sensors.wait(20) == 0
        assert sensors.stderr.read().splitlines() == [
            b"reticent: the useful value stays in the next episode with chance 0.25."
        ]


def test_what_cannot_be_simulated_is_told(tmp_path):
    for words, sentence in [
        ({"problem": "synthetic", "subjects": 0}, "--subjects"),
        ({"problem": "synthetic", "episodes": -1}, "--episodes"),
        ({"problem": "synthetic", "seed": -1}, "--seed"),
        ({"problem": "synthetic", "stays": 1.5}, "--stays must be a probability from 0 to 1; it is 1.5"),
        ({"problem": "synthetic", "data": tmp_path}, "reticent fit"),
        ({"problem": "synthetic", "pace": PaceOptions(speed=0.0)}, "--speed"),
        ({"problem": str(tmp_path / "none.json")}, "Cannot read"),
        ({"problem": str(tmp_path / "none.safetensors")}, "no policy file"),
    ]:
        with pytest.raises(InputError, match=sentence):
            Simulate(**words).run()


def recorded_table(folder):
    """Recordings of three people as a CSV file with its map, and a problem fitted to them."""
    rng = np.random.default_rng(0)
    rows = ["who,when,smokes,does,x,y,p"]
    for person in range(3):
        for pair in range(4):
            for sample in range(40):
                secret, useful = divmod(pair, 2)
                x, y, p = rng.normal(3 * useful, 1), rng.normal(secret, 1), rng.normal(useful + secret, 1)
                rows.append(f"p{person},{1000 * pair + sample / 10},{secret},{useful},{x:.4f},{y:.4f},{p:.4f}")
    (folder / "mine.csv").write_text("\n".join(rows) + "\n")
    (folder / "mine.toml").write_text(
        'files = "mine.csv"\nperson = "who"\ntime = "when"\n[sensors]\narm = ["x", "y"]\nhip = ["p"]\n'
        '[useful]\ncolumn = "does"\n[secret]\ncolumn = "smokes"\n'
    )


@pytest.mark.slow
def test_recordings_of_a_fitted_model_are_played(tmp_path, monkeypatch, capfdbinary):
    """Live, people get the codes that they have in recordings: with the encoder of the gateway."""
    recorded_table(tmp_path)
    where = Where(data=tmp_path, map=tmp_path / "mine.toml")
    monkeypatch.chdir(tmp_path)
    Fit("table", tmp_path / "fitted.json", where, What(codes=4)).run()
    capfdbinary.readouterr()
    fast = PaceOptions(interval=0.0, pause=0.0, readings=3)
    Simulate("fitted.json", 2, 1, fast, tmp_path, tmp_path / "mine.toml").run()
    messages = [parse_line(each) for each in capfdbinary.readouterr().out.splitlines()]
    assert {(message.subject, message.sensor) for message in messages} == {
        (person, sensor) for person in ("p0", "p1") for sensor in ("arm", "hip")
    }
    assert len(messages) == 2 * 2 * 3
    model = read_problem("fitted.json")
    encoder = Encoder.of(model)
    for message in messages:
        assert message.reading is not None
        assert 0 <= encoder.coded(model.sensors.index(message.sensor), message.reading) < 4


def test_the_demo_policy_is_for_the_demo_problem():
    runtime, model = Runtime.load(POLICY), demo_model()
    assert np.array_equal(runtime.task.model.channel, model.channel)
    assert runtime.task.model.useful == model.useful
    assert runtime.task.enforcement.name == "coarsen"
    assert POLICY.stat().st_size < 50_000


def test_the_demo_says_how_often_visitors_go_on_doing_the_same_and_what_that_tells():
    with subprocess.Popen([*RETICENT, "serve", "--demo"], stdout=subprocess.DEVNULL, stderr=-1, text=True) as command:
        assert command.stderr is not None
        said = next(line for line in command.stderr if "in this demo" in line)
        command.terminate()
        assert command.wait(20) == 0
    assert "come for 7 sessions, and after 25 % of them continue the same activity" in said
    share = re.search(r"reaches the bound for (\d+) % \[(\d+), (\d+)\] of subjects within 7 sessions", said)
    assert share is not None
    low, high = int(share[2]), int(share[3])
    assert 0 < low <= int(share[1]) <= high < 100


def test_visitors_come_and_go(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "PACE", Pace(interval=0.01, pause=0.0))
    place = Place(tmp_path)
    visitors = Visitors(place.gateway, seed=0)
    names = {f"visitor {number}" for number in range(1, VISITORS + 1)}
    heard = _heard(visitors, 5)
    assert heard == names
    for _ in range(demo.SESSIONS):
        place.gateway._events.tell({"kind": "stop", "subject": "visitor 2"})
    time.sleep(0.2)
    _heard(visitors, 20)
    assert _heard(visitors, 5) == names - {"visitor 2"} | {f"visitor {VISITORS + 1}"}
    visitors.close()
    place.ledger.close()


def _heard(visitors, pieces):
    """Who speaks, in so many pieces of what comes out of the pipe."""
    names = set()
    for _ in range(pieces):
        time.sleep(0.02)
        names |= {parse_line(each).subject for each in os.read(visitors.readings, 65_536).splitlines()}
    return names
