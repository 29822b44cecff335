"""A gateway with its page, and peers: one PostgreSQL server per worker for tests that ask for it, a broker for each.

Tests with a peer are slow ones, whether or not it is installed: quick tests need nothing but Python, and are the same
on every machine.
"""

from contextlib import closing

import pytest

from reticent.gateway.page import Page
from tests.gateway.brokers import Mosquitto
from tests.gateway.parts import Place
from tests.gateway.places import FilePlace, postgres_server


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        fixtures, parameters = set(getattr(item, "fixturenames", ())), getattr(item, "callspec", None)
        if fixtures & {"postgres", "mosquitto", "chromium"} or (
            parameters and parameters.params.get("ledger_place") == "postgres"
        ):
            item.add_marker("slow")


@pytest.fixture
def place(tmp_path):
    """A gateway on a file, with an untrained policy."""
    found = Place(tmp_path)
    yield found
    found.ledger.close()


@pytest.fixture
def page(place):
    """The page of that gateway, on a free port."""
    with closing(Page(place.gateway, port=0)) as found:
        yield found


@pytest.fixture(scope="session")
def postgres():
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_place(request, tmp_path):
    """Where a ledger can be, of either kind; empty."""
    if request.param == "sqlite":
        return FilePlace(str(tmp_path / "ledger.db"))
    return request.getfixturevalue("postgres").place()


@pytest.fixture
def mosquitto(tmp_path):
    with closing(Mosquitto(tmp_path)) as broker:
        yield broker
