"""What tests of audits share."""

import pytest

from reticent.audit.classifiers import Logistic
from reticent.audit.naive_bayes import NaiveBayes


@pytest.fixture
def quick_attackers(monkeypatch):
    """Those that learn in no time, and few draws for intervals: the others have tests of their own."""
    monkeypatch.setattr("reticent.audit.measures.MOST_DRAWS", 1000)
    monkeypatch.setattr("reticent.audit.panel.full_panel", lambda seed, progress: [NaiveBayes, lambda: Logistic(seed)])
    monkeypatch.setattr("reticent.audit.panel.quick_panel", lambda seed: [NaiveBayes, lambda: Logistic(seed)])
    monkeypatch.setattr("reticent.audit.panel.part_panel", lambda seed: [NaiveBayes])
