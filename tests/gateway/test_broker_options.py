"""How a broker is told: what cannot be right is refused with a sentence, and passwords stay unseen."""

import sys
from pathlib import Path

import pytest

from reticent.cli.broker import BrokerOptions
from reticent.errors import InputError


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"broker": "host:port"}, "host:port"),
        ({"broker": ""}, "host:port"),
        ({"broker": "host:0"}, "host:port"),
        ({"broker": "a..b"}, "host:port"),
        ({"broker": f"{'x' * 64}.example"}, "host:port"),
        ({"tls": Path(__file__)}, "cannot be read as a certificate"),
        ({"in_topic": "a/+"}, "no topic"),
        ({"in_topic": ""}, "no topic"),
        ({"out_topic": "/out"}, "no topic"),
        ({"in_topic": "x", "out_topic": "x/y"}, "come in again"),
        ({"in_topic": "x", "out_topic": "x"}, "come in again"),
        ({"qos": 3}, "--qos"),
        ({"tls": Path("none.pem")}, "no such file"),
        ({"credentials": Path("none")}, "cannot be read"),
    ],
)
def test_options_are_checked(options, sentence):
    with pytest.raises(InputError, match=sentence):
        BrokerOptions(**options).settings()


def test_without_the_extra_package_a_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "paho.mqtt.client", None)
    for name in ("reticent.gateway.link", "reticent.gateway.mqtt"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(InputError, match=r"pip install 'reticent\[mqtt\]'"):
        BrokerOptions().settings()


def test_where_the_broker_is():
    for told, host, port in [
        ("home", "home", 1883),
        ("home:1", "home", 1),
        ("[::1]", "::1", 1883),
        ("[::1]:7", "::1", 7),
    ]:
        found = BrokerOptions(told).settings()
        assert (found.host, found.port) == (host, port)


def test_a_password_that_others_could_overhear_is_told(monkeypatch, capsys):
    monkeypatch.setenv("RETICENT_MQTT_PASSWORD", "swordfish")
    BrokerOptions("localhost").settings()
    assert capsys.readouterr().err == ""
    BrokerOptions("elsewhere.example").settings()
    told = capsys.readouterr().err
    assert "--tls" in told
    assert "swordfish" not in told


def test_credentials_in_a_file_that_everybody_may_read_are_refused(tmp_path):
    path = tmp_path / "credentials"
    path.write_text("gate\nswordfish\n")
    path.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        BrokerOptions(credentials=path).settings()
    path.chmod(0o600)
    found = BrokerOptions(credentials=path).settings()
    assert (found.username, found.password) == ("gate", "swordfish")
    path.write_text("gate\n")
    with pytest.raises(InputError, match="two lines"):
        BrokerOptions(credentials=path).settings()
