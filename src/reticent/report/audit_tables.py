"""Tables of an audit, as rows of text from audit.json."""

from typing import Any

# Words for the codes of `fitted_on` in audit.json.
TRAINED_ON = {"own": "the policy's own traces", "random": "random traces", "model": "the model"}
HEADINGS = (
    "attacker",
    "learned from",
    "secret",
    "useful",
    "secret plain",
    "secret per class",
    "bits about S",
    "highest",
)


def observer_rows(attacks: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Observer, strongest attacker, and its balanced accuracies on S and U."""
    return [
        (each["observer"], each["attacker"], spaced(each["secret"]["balanced"]), spaced(each["useful"]["balanced"]))
        for each in attacks
    ]


def attack_rows(found: dict[str, Any]) -> list[list[str]]:
    """One row per attacker, the most accurate on the secret first."""
    attacks = sorted(found["attacks"], key=lambda each: -each["secret"]["balanced"]["value"])
    return [
        [
            each["attacker"],
            TRAINED_ON[each["fitted_on"]],
            spaced(each["secret"]["balanced"]),
            spaced(each["useful"]["balanced"]),
            spaced(each["secret"]["accuracy"]),
            " / ".join("-" if one is None else f"{100 * one['value']:.0f}" for one in each["secret"]["per_class"]),
            _interval(each["secret"]["bits"]),
            f"{each['secret']['highest_confidence']:.3f}",
        ]
        for each in attacks
    ]


def spaced(estimate: dict[str, float]) -> str:
    """Percentage with its interval."""
    return f"{100 * estimate['value']:.1f} [{100 * estimate['low']:.1f}, {100 * estimate['high']:.1f}]"


def _interval(estimate: dict[str, float]) -> str:
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"


def leakage_rows(found: dict[str, Any]) -> list[list[str]]:
    """Shannon, min-entropy and maximal leakage of each sensor and of whole episodes."""
    kinds = ("shannon_bits", "min_entropy_bits", "maximal_bits")
    rows = [
        [f"one raw reading of {each['sensor']} (exact for the model)", *(f"{each[kind]:.3f}" for kind in kinds)]
        for each in found["channels"]
    ]
    if whole := found["leakage"]:
        rows.append(["a whole episode, to exact Bayes (estimate)", *(_interval(whole[kind]) for kind in kinds)])
    return rows


def same_utility_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Accuracy on S of baselines with the same accuracy on U as the audited policy."""
    if not found["same_utility"]:
        return []
    rows = [("the audited policy", spaced(found["audited"]["secret"]))]
    for each in found["same_utility"]:
        name = f"{each['policy']}, {each['variant']}" if each["variant"] else each["policy"]
        rows.append((name, spaced(each["secret"]) if each["secret"] else "does not reach the same accuracy on U"))
    return rows


def session_rows(found: dict[str, Any]) -> list[list[str]]:
    """Confidence, violations and information spent after several sessions."""
    return [
        [
            way,
            str(each["sessions"]),
            spaced(each["confidence"]),
            spaced(each["violation_rate"]) if each["violation_rate"] else "-",
            _interval(each["spent_bits"]),
        ]
        for way in ("forgotten", "carried")
        for each in found[way]
        if each["sessions"] in (1, 2, 5, 10)
    ]


def attack_title(each: dict[str, Any]) -> str:
    """The attacker and, if it was trained, what on."""
    return each["attacker"] if each["fitted_on"] == "model" else f"{each['attacker']}, {TRAINED_ON[each['fitted_on']]}"
