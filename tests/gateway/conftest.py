"""Peers: one PostgreSQL server for all tests of a worker that ask for it, a broker for each.

Tests with a peer are slow ones, whether or not it is installed: quick tests need nothing but Python, and are the same
on every machine.
"""

from contextlib import closing

import pytest

from tests.gateway.brokers import Mosquitto
from tests.gateway.places import FilePlace, postgres_server


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        fixtures, parameters = set(getattr(item, "fixturenames", ())), getattr(item, "callspec", None)
        if fixtures & {"postgres", "mosquitto", "chromium"} or (
            parameters and parameters.params.get("place") == "postgres"
        ):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def postgres():
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where a ledger can be, of either kind; empty."""
    if request.param == "sqlite":
        return FilePlace(str(tmp_path / "ledger.db"))
    return request.getfixturevalue("postgres").place()


@pytest.fixture
def mosquitto(tmp_path):
    with closing(Mosquitto(tmp_path)) as broker:
        yield broker
