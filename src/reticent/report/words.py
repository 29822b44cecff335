"""Names and colours of bounds and methods in reports."""

from typing import Any

# The columns of a row that tell settings apart, but for problem and price.
SETTING = ("bound", "limit", "enforcement", "method")
PPO, A2C, LOOKAHEAD, UNPROTECTED, LOWER_BOUND = "ppo", "a2c", "one-step lookahead", "no protection", "lower bound"
ITERATED = ("value-iteration", "value-kernels")
BOUNDS = {
    "confidence": "L_B {:g}",
    "information": "L_MI {:g}",
    "expected information": "mean {:g} bits",
    "unbounded": "none",
}
AXES = {
    "confidence": "bound on the provider's confidence in S, L_B",
    "information": "bound on information about S, L_MI (bits)",
    "expected information": "bound on information about S, on average (bits)",
}
# In words, and their colour; in this order.
METHODS = {
    PPO: ("PPO", "#111111"),
    A2C: ("A2C", "#888888"),
    LOWER_BOUND: ("certified lower bound", "#2e8b57"),
    "value-iteration": ("value iteration", "#c0392b"),
    "value-kernels": ("value kernels", "#7b1e12"),
    LOOKAHEAD: (LOOKAHEAD, "#d98e04"),
    "information gain": ("information gain", "#7a5195"),
    "EJS": ("EJS", "#4c9f70"),
    "Chernoff": ("Chernoff", "#c46a9a"),
    "randomised response": ("randomised response", "#b5651d"),
    "privacy funnel": ("privacy funnel", "#6b8e23"),
    "fixed sensor": ("fixed sensor", "#8c6d46"),
    "random sensor": ("random sensor", "#5b7fb5"),
    UNPROTECTED: (UNPROTECTED, "#5d6b7c"),
}


def bound_words(row: dict[str, Any]) -> str:
    """The bound of a row."""
    return BOUNDS[row["bound"]].format(row["limit"])


def method_words(method: str) -> str:
    """A method by name."""
    return METHODS[method][0] if method in METHODS else method
