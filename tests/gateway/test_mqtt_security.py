"""Over a real broker with passwords and certificates."""

import base64
import gc
import hashlib
import shutil
import subprocess
from contextlib import closing

import pytest

from reticent.cli.broker import BrokerOptions
from reticent.gateway import mqtt
from reticent.gateway.mqtt import Broker
from tests.gateway.brokers import Mosquitto, needs_mosquitto
from tests.gateway.on_broker import Outside, Running, until

pytestmark = [pytest.mark.slow, needs_mosquitto]


def test_username_and_password(tmp_path, monkeypatch):
    hashed, secret = tmp_path / "passwords", "swordfish"
    hashed.write_text(_hashed("gate", secret))
    hashed.chmod(0o600)
    with closing(Mosquitto(tmp_path, "allow_anonymous false", f"password_file {hashed}")) as mosquitto:
        monkeypatch.setenv("RETICENT_MQTT_USERNAME", "gate")
        monkeypatch.setenv("RETICENT_MQTT_PASSWORD", "wrong")
        wrong = BrokerOptions(f"127.0.0.1:{mosquitto.port}").settings()
        with closing(Running(tmp_path, wrong)) as service:
            until(lambda: service.gateway.trouble)
            assert "credentials" in str(service.gateway.trouble)
            assert "wrong" not in str(service.gateway.trouble)
        monkeypatch.setenv("RETICENT_MQTT_PASSWORD", secret)
        right = BrokerOptions(f"127.0.0.1:{mosquitto.port}").settings()
        with closing(Running(tmp_path, right)) as service:
            service.ready()
            with closing(Outside(mosquitto.port, username="gate", password=secret)) as outside:
                outside.say()
                until(lambda: outside.releases())


def _hashed(user: str, password: str) -> str:
    """A line of mosquitto's password file: PBKDF2 with SHA-512."""
    salt, rounds = b"salt of test", 101
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, rounds, 64)
    return f"{user}:$7${rounds}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}\n"


# Of a handshake that failed, paho leaves the socket to be found later.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes the certificates, is not installed")
def test_tls_with_an_authority_of_our_own(tmp_path):
    ca, key, request, certificate = (tmp_path / name for name in ("ca.pem", "key.pem", "request.pem", "cert.pem"))
    openssl = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    ca_key, names = tmp_path / "ca-key.pem", tmp_path / "names"
    names.write_text("subjectAltName=DNS:localhost")
    authority = ["-x509", "-days", "2", "-subj", "/CN=test authority", "-keyout", ca_key, "-out", ca]
    sign = ["openssl", "x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2"]
    for words in (
        [*openssl, *authority],
        [*openssl, "-subj", "/CN=localhost", "-keyout", key, "-out", request],
        [*sign, "-extfile", names, "-out", certificate],
    ):
        subprocess.run(words, check=True, capture_output=True)
    settings = ("allow_anonymous true", f"certfile {certificate}", f"keyfile {key}")
    with closing(Mosquitto(tmp_path, *settings)) as mosquitto:
        trusted = BrokerOptions(f"localhost:{mosquitto.port}", tls=ca).settings()
        with closing(Running(tmp_path, trusted)) as service:
            service.ready()
            with closing(Outside(mosquitto.port, ca=str(ca))) as outside:
                # Many at once: TLS holds more of them than the socket shows.
                names = [f"subject {i}" for i in range(200)]
                for name in names:
                    outside.say(name)
                until(lambda: all(outside.releases(name) for name in names))
        # The certificate is not for this name.
        stranger = BrokerOptions(f"127.0.0.1:{mosquitto.port}", tls=ca).settings()
        with closing(Running(tmp_path, stranger)) as service:
            until(lambda: service.gateway.trouble)
            assert "certificate" in str(service.gateway.trouble)
        gc.collect()


def test_a_certificate_that_cannot_be_read_any_more_is_waited_for(tmp_path, monkeypatch):
    ca = tmp_path / "ca.pem"
    monkeypatch.setattr(mqtt, "_tls", lambda ca: None)
    broker = Broker("127.0.0.1", 1, ca=ca)
    monkeypatch.undo()
    with closing(Running(tmp_path, broker)) as service:
        until(lambda: service.gateway.trouble)
        assert "cannot be read as a certificate" in str(service.gateway.trouble)
        assert service._thread.is_alive()
