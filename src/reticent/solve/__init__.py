"""Offline: process -> policy, with evidence of how good it is."""
