"""What tests of audits share."""

import pytest

from reticent.audit.attackers import Counting, Logistic


@pytest.fixture
def quick_attackers(monkeypatch):
    """Those that learn in no time, and few draws for intervals: the others have tests of their own."""
    monkeypatch.setattr("reticent.audit.measures.MOST_DRAWS", 1000)
    monkeypatch.setattr("reticent.audit.audit._learned", lambda seed, tell: [Counting, lambda: Logistic(seed)])
    monkeypatch.setattr("reticent.audit.audit._quick", lambda seed: [Counting, lambda: Logistic(seed)])
    monkeypatch.setattr("reticent.audit.audit._alone", lambda seed: [Counting])
