"""What people who operate a gateway expect: metrics, health, logs, a service manager."""

import json
import logging
import socket
from contextlib import closing
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reticent import __version__
from reticent.gateway.health import DEAD_SECONDS, Health
from reticent.gateway.logs import JsonLines
from reticent.gateway.metrics import Metrics
from reticent.gateway.systemd import Systemd
from tests.gateway.parts import Place, coarsened


@pytest.fixture
def health(place):
    with closing(Health(place.gateway, port=0)) as found:
        yield found


def told(metrics):
    """{name: {labels: number}} of what Prometheus would read."""
    families, found = text_string_to_metric_families(metrics.text().decode()), {}
    for sample in (sample for family in families for sample in family.samples):
        found.setdefault(sample.name, {})[",".join(sample.labels.values())] = sample.value
    return found


def test_metrics_count_what_became_of_messages(place):
    metrics = Metrics(place.gateway)
    asked = place.asked()
    place.gateway.handle([place.message(sensor=name) for name in place.runtime.sensors if name != asked])
    place.tick()
    place.tick("bob")
    found = told(metrics)
    assert found["reticent_received_total"][""] == 4
    assert found["reticent_messages_total"]["released"] == 2
    assert found["reticent_messages_total"]["not asked"] == 2
    assert found["reticent_sent_total"] == {"as read": 2.0, "merged": 0.0}
    assert found["reticent_batch_seconds_count"][""] == 3
    assert found["reticent_subjects"] == {"waits": 2, "rests": 0, "nothing_left": 0, "drifted": 0, "held": 0}
    assert found["reticent_undelivered"][""] == 0
    assert set(next(iter(found["reticent_info"])).split(",")) == {place.runtime.digest, __version__}


def test_merged_releases_are_told_apart(tmp_path):
    place = Place(tmp_path, coarsened())
    metrics = Metrics(place.gateway)
    for number in range(40):
        place.tick(f"subject {number}", reading=number)
    sent = told(metrics)["reticent_sent_total"]
    plain = set(place.runtime.task.model.symbols)
    entries = [next(iter(place.ledger.entries(f"subject {number}"))) for number in range(40)]
    merged = sum(entry.symbol not in plain for entry in entries)
    assert 0 < merged < 40
    assert sent == {"as read": 40 - merged, "merged": merged}
    place.ledger.close()


def test_headroom_is_that_of_the_subjects(place):
    for number in range(3):
        place.tick("ada")
        place.tick(f"subject {number}")
    now = place.gateway.status()
    each = [place.gateway.look(name)["left"] for name in ("ada", "subject 0", "subject 1", "subject 2")]
    assert now.census.headroom.tolist() == pytest.approx(sorted(each), abs=1e-12)
    assert told(Metrics(place.gateway))["reticent_headroom"]["0.0"] == pytest.approx(min(each))


def test_no_name_of_a_subject_is_told(place):
    place.tick("a very particular name")
    assert b"particular" not in Metrics(place.gateway).text()


def test_a_gateway_in_trouble_is_alive_but_not_ready(place, health):
    address = f"http://127.0.0.1:{health.port}"
    assert urlopen(f"{address}/readyz").status == 200
    place.gateway.pause()
    with pytest.raises(HTTPError) as refused, closing(urlopen(f"{address}/readyz")):
        pass
    assert refused.value.code == 503
    assert "Paused by hand" in refused.value.read().decode()
    assert urlopen(f"{address}/healthz").read() == b"alive\n"
    assert told_trouble(health) == {"paused"}
    place.gateway.resume()
    assert urlopen(f"{address}/readyz").read() == b"ready\n"


def told_trouble(health):
    status, _, body = health.answer("/metrics")
    assert status == 200
    lines = [line for line in body.decode().splitlines() if line.startswith("reticent_trouble{")]
    assert lines
    return {line.split('"')[1] for line in lines if line.endswith(" 1.0")}


def test_a_loop_that_does_not_turn_is_dead(place, health, monkeypatch):
    started = place.gateway._turned
    monkeypatch.setattr("reticent.gateway.service.time.monotonic", lambda: started + DEAD_SECONDS + 1)
    status, _, sentence = health.answer("/healthz")
    assert status == 503
    assert b"has not turned for 31 s" in sentence


def test_other_paths_are_not_served(health):
    assert health.answer("/")[0] == health.answer("/metrics/x")[0] == 404


def test_logs_as_json_are_one_object_per_line():
    record = logging.LogRecord("reticent.gateway", logging.WARNING, "", 0, "Dropped: %s\nso far", ("stale",), None)
    line = JsonLines().format(record)
    assert "\n" not in line
    said = json.loads(line)
    assert (said["level"], said["message"]) == ("warning", "Dropped: stale\nso far")


def test_the_service_manager_is_told(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(2.0)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "30000000")
        monkeypatch.delenv("WATCHDOG_PID", raising=False)
        systemd = Systemd()
        systemd.ready("serves")
        systemd.turned()
        systemd.turned()
        systemd.stopping()
        assert [manager.recv(100) for _ in range(3)] == [b"READY=1\nSTATUS=serves", b"WATCHDOG=1", b"STOPPING=1"]


def test_without_a_service_manager_nothing_is_told(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    opened = []
    monkeypatch.setattr("reticent.gateway.systemd.socket.socket", lambda *kind: opened.append(kind))
    systemd = Systemd()
    systemd.ready("serves")
    systemd.turned()
    assert opened == []
