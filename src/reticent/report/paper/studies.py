"""The claims that the paper makes about its studies, on the synthetic problem and on recordings."""

import polars as pl

from reticent.report.paper.claims import (
    Claim,
    Finding,
    above_random,
    hides_better,
    names_useful_more_often,
    rises,
    stays_below,
    verdicts,
    widest_at,
)
from reticent.report.paper.printed import TABLE
from reticent.report.paper.settings import settings

B, MI = ("confidence",), ("information",)
SIGNS = {"confidence": ("π_B", "L_B"), "information": ("π_MI", "L_MI")}


def _ends(bound: str, measure: str) -> str:
    """What the paper's table has at its tightest and its loosest bound."""
    own = [line for line in TABLE if line.bound == bound]
    return ", ".join(f"{getattr(line, measure):g} at {line.limit:g}" for line in (own[0], own[-1]))


def _rising(bound: str, printed: bool) -> list[Claim]:
    policy, limit = SIGNS[bound]
    numbers = [_ends(bound, measure) if printed else "a figure" for measure in ("releases", "confidence_useful")]
    return [
        Claim(f"τ of {policy} rises as {limit} is relaxed", numbers[0], (bound,), rises(bound, "releases", 2)),
        Claim(
            f"max β(u) of {policy} rises as {limit} is relaxed (%)",
            numbers[1],
            (bound,),
            rises(bound, "confidence_useful", 1, scale=100.0),
        ),
    ]


COMMON = [
    Claim(
        "the gap of accuracies is wider under π_B than for random sensors", "a figure", B, above_random("confidence")
    ),
    Claim(
        "the gap of accuracies is wider under π_MI than for random sensors", "a figure", MI, above_random("information")
    ),
    Claim("π_B hides S better than π_MI", "a figure", (*B, *MI), hides_better),
    Claim("the confidence in S stays below L_B at every t ≤ τ", "a constraint", B, stays_below(B[0])),
    Claim("the information on S stays below L_MI at every t ≤ τ", "a constraint", MI, stays_below(MI[0])),
]
SYNTHETIC_CLAIMS = [
    *_rising("confidence", printed=False),
    *_rising("information", printed=False),
    Claim("U is named more often than S under π_B", "a figure", B, names_useful_more_often("confidence")),
    Claim("U is named more often than S under π_MI", "a figure", MI, names_useful_more_often("information")),
    *COMMON,
]
RECORDED_CLAIMS = [
    *_rising("confidence", printed=True),
    *_rising("information", printed=True),
    *COMMON,
    Claim(
        "the same gap under π_B, to attackers retrained on its traces",
        "not tried",
        B,
        above_random("confidence", by="retrained"),
    ),
    Claim(
        "the same gap under π_MI, to attackers retrained on its traces",
        "not tried",
        MI,
        above_random("information", by="retrained"),
    ),
    Claim("the gap of π_B is widest at L_B .65", "31.2 at .65, 24.1 at .8 (table)", B, widest_at("confidence", 0.65)),
    Claim(
        "the gap of π_MI is widest at L_MI 1.2",
        "18.5 at 1.25, 13.8 at 2 (the table has no 1.2)",
        MI,
        widest_at("information", 1.25),
    ),
]


def found(rows: pl.DataFrame) -> list[tuple[Claim, Finding, Finding]]:
    """What the rows of a study say of each claim, to the letter and corrected; nothing where it was not run so."""
    if "paper" not in set(rows["enforcement"]):
        return []
    claims = RECORDED_CLAIMS if "as_printed" in rows.columns else SYNTHETIC_CLAIMS
    return verdicts(settings(rows), claims)
