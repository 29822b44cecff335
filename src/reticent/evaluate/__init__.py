"""Simulation of a policy, summarised as estimates with intervals."""
