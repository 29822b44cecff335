"""Options of commands that connect to an MQTT broker."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.gateway.mqtt import Broker

USERNAME, PASSWORD = "RETICENT_MQTT_USERNAME", "RETICENT_MQTT_PASSWORD"
PORT, TLS_PORT = 1883, 8883
HERE = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class BrokerOptions:
    """Used with --on mqtt. Credentials: RETICENT_MQTT_USERNAME and RETICENT_MQTT_PASSWORD, or --credentials."""

    broker: str = "localhost"
    """Host, or host:port, of the broker."""
    in_topic: str = "in"
    """Readings come on IN/<subject>/<sensor>."""
    out_topic: str = "out"
    """Releases go to OUT/<subject>."""
    qos: int = 1
    """Quality of service: 0 at most once, 1 at least once, 2 exactly once."""
    share: str | None = None
    """A name that several gateways have in common, on one PostgreSQL ledger: the broker divides the readings among
    them."""
    tls: Path | None = None
    """Use TLS, and trust certificates signed by this authority (a PEM file)."""
    credentials: Path | None = None
    """A file with user name and password on two lines; it must not be readable by all users."""

    def settings(self) -> "Broker":
        """The broker's address, topics and credentials, checked."""
        from reticent.gateway.mqtt import Broker

        host, port = _address(self.broker, PORT if self.tls is None else TLS_PORT)
        if self.tls is not None and not self.tls.is_file():
            raise InputError(f"--tls {str(self.tls)!r}: there is no such file.")
        username, password = self._credentials()
        if password is not None and self.tls is None and host not in HERE:
            print(f"reticent: the password goes to {host} unencrypted; use --tls.", file=sys.stderr)
        return Broker(host, port, self.in_topic, self.out_topic, self.qos, self.tls, username, password, self.share)

    def _credentials(self) -> tuple[str | None, str | None]:
        if self.credentials is None:
            return os.environ.get(USERNAME), os.environ.get(PASSWORD)
        try:
            everybody = self.credentials.stat().st_mode & 0o007
            lines = self.credentials.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise InputError(f"--credentials {str(self.credentials)!r} cannot be read: {why}.") from error
        if everybody:
            raise InputError(f"Everybody may read or change {str(self.credentials)!r}: chmod 600 it.")
        if len(lines) != 2:
            raise InputError(f"{str(self.credentials)!r} must hold two lines: the user name, then the password.")
        return lines[0], lines[1]


def _is_host_name(host: str) -> bool:
    """Whether the text can be resolved: labels between dots have 1 to 63 characters."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def _address(broker: str, port: int) -> tuple[str, int]:
    """Host and port of "host", "host:port", "[::1]" or "[::1]:port"."""
    host, colon, digits = broker.rpartition(":")
    if not colon or broker.endswith("]"):
        host, digits = broker, str(port)
    host = host.removeprefix("[").removesuffix("]")
    if not _is_host_name(host) or not digits.isdecimal() or not 0 < int(digits) < 65536:
        raise InputError(f"--broker must be host or host:port; it is {broker!r}.")
    return host, int(digits)
