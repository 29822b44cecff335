"""Audits: what attackers learn from releases, and at what utility."""
