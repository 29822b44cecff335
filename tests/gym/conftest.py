"""Outside agents are not always installed; audits and certificates take long, and have tests of their own."""

import pytest

AGENTS = "pip install 'reticent[agents]'"


@pytest.fixture
def sb3():
    return pytest.importorskip("stable_baselines3", reason=f"needs Stable-Baselines3: {AGENTS}")


@pytest.fixture
def contrib():
    return pytest.importorskip("sb3_contrib", reason=f"needs sb3-contrib: {AGENTS}")


@pytest.fixture
def less_work(monkeypatch):
    """Two attackers, no simpler policies, two wrong models, few people who come back, few episodes to certify."""
    from reticent.audit.classifiers import Logistic
    from reticent.audit.naive_bayes import NaiveBayes
    from reticent.solve import certificate

    monkeypatch.setattr("reticent.audit.panel.full_panel", lambda seed, progress: [NaiveBayes, lambda: Logistic(seed)])
    monkeypatch.setattr("reticent.audit.panel.quick_panel", lambda seed: [NaiveBayes, lambda: Logistic(seed)])
    monkeypatch.setattr("reticent.audit.comparison.BASELINES", ())
    monkeypatch.setattr("reticent.audit.policy_audit.FACTORS", ())
    monkeypatch.setattr("reticent.audit.policy_audit.SHARES", (0.2, 0.4))
    monkeypatch.setattr("reticent.audit.policy_audit.PEOPLE", 256)
    monkeypatch.setattr(certificate, "PLAIN_EPISODES", 16_384)
