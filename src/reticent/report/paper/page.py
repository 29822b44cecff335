"""The page that says of each claim of the paper whether it holds, written from saved settings only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reticent.report.paper.claims import UNCHECKED, Claim, Finding, verdicts
from reticent.report.paper.printed import POLICIES, TABLE, impossible_cells, possible, shares_exist
from reticent.report.paper.studies import RECORDED_CLAIMS, SYNTHETIC_CLAIMS

Row = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """A study of the paper: its name and problem, the command that runs it, and what was saved of it, if it was run."""

    name: str
    problem: str
    command: str
    recorded: bool
    came: str | None = None
    rows: tuple[Row, ...] = ()

    @property
    def claims(self) -> list[Claim]:
        """What the paper says of such a study."""
        return RECORDED_CLAIMS if self.recorded else SYNTHETIC_CLAIMS


@dataclass(frozen=True)
class Demonstration:
    """A small table of numbers, and how they came, if they were made."""

    came: str | None = None
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Demonstrations:
    """The printed signs, and other places of the symbols."""

    signs: Demonstration = Demonstration()
    z_ranges: Demonstration = Demonstration()


@dataclass(frozen=True)
class Open:
    """Something that the paper does not say: the option (none where it is fixed), what is taken, and why."""

    what: str
    option: str
    taken: str
    printed: str
    why: str


INTRODUCTION = """# The paper, held against its own method

Erdemir, Dragotti and Gündüz, *Active privacy-utility trade-off against inference in time-series data sharing*, run to
the letter (its agent, its printed cost, its readings) and corrected (charged on entry or masked, a stronger agent).

This page is written by `python -m benchmarks.page` from saved results; do not edit it. A verdict comes first, of the
letter and then of the corrected version:

- **reproduced**: the number that should be above zero is, with its 95 % interval.
- **contradicted**: it is below zero with its interval. A bound that is to hold always is contradicted by one episode.
- **undecided**: the interval has zero in it, or there was one unit only.
- **unchecked**: it was not run yet, or cannot be.

Intervals are Student's, over draws of the synthetic problem or over rotations of people. What was not run to its full
length says so. Everything but the arithmetic of the paper's own table is an estimate.
"""
# Each line of the paper that can be read in several ways, and how it is taken.
READINGS = (
    (
        "c(x, a): C_B if x = F_B and a releases",
        "a release *from* the forbidden region costs C_B in place of C_T; entering it and stopping costs no more",
    ),
    (
        "F_MI: I(S; Z^t, A^t) ≥ L_MI at β_t, which follows from Z^(t-1)",
        "the release that reaches L_MI costs C_MI on top of C_T, and so does every later one",
    ),
    ("no cost of stopping in F_B or F_MI", "λ (1 - max β(u)), as the text says"),
    (
        "critic: ascent on δ²; actor: descent on -ln π δ, where δ is of costs",
        "both descend, on δ² and on + ln π δ; the printed signs are shown above",
    ),
    ("Theorem 3 with a minus sign", "without it: information is not negative"),
    ("Theorem 2: V ≤ min{C_T + min T^a V*, ...}", "T^a V; with V* on the right it holds nothing to compute"),
    (
        "the ledger of Theorem 3 averages over π",
        "the sum over the sensors taken is what is charged; the averaged one is shown beside it",
    ),
    ("training data in three portions", "portions of people, and a fourth to measure on that nobody learned from"),
)
HEADINGS = ("version", "bound", "τ", "max β(u)", "U", "U per value", "S", "S per value", "over", "over, averaged")
VERSIONS = ("letter, unprotected", "letter", "unprotected", "corrected")


def page(studies: Sequence[Study], shown: Demonstrations, left_open: Sequence[Open]) -> str:
    """The whole page, as Markdown."""
    parts = [INTRODUCTION, *(_study(study) for study in studies), _printed_table()]
    parts += [_signs(shown.signs), _z_ranges(shown.z_ranges)]
    return "\n".join([*parts, _readings(), _left_open(left_open)])


def _study(study: Study) -> str:
    came = study.came or f"Not run yet: `{study.command}`."
    lines = ["| letter | corrected | claim | the paper prints | letter | corrected |", "|---|---|---|---|---|---|"]
    lines += [_verdict(*each) for each in verdicts(study.rows, study.claims)]
    return "\n".join([f"## {study.name}\n", f"{study.problem}\n", f"{came}\n", *lines, "", *_numbers(study)])


def _verdict(claim: Claim, letter: Finding, corrected: Finding) -> str:
    numbers = ["" if each is UNCHECKED else each.numbers for each in (letter, corrected)]
    return f"| **{letter.word}** | {corrected.word} | {claim.says} | {claim.prints} | {numbers[0]} | {numbers[1]} |"


def _numbers(study: Study) -> list[str]:
    """What was measured at every bound, in the columns of the paper's table."""
    if not study.rows:
        return []
    order = {name: place for place, name in enumerate(VERSIONS)}
    own = sorted((row for row in study.rows if row["version"] in order), key=lambda row: order[row["version"]])
    words = (
        "Accuracies and shares in %, means over units with intervals; accuracies of each value in their order. Over: "
        "episodes that reached the bound; averaged: by the ledger of Theorem 3.\n"
    )
    return [words, _table_line(HEADINGS), "|---" * len(HEADINGS) + "|", *map(_line, own), ""]


def _line(row: Row) -> str:
    label = "none" if row["limit"] is None else f"{row['bound']} {row['limit']:g}"
    over = "-" if row["limit"] is None else _percent(row, "violation_rate")
    classes = [row.get(f"accuracy_per_{x}") or row.get(f"per_{x}") for x in ("useful", "secret")]
    each = [" / ".join("-" if x is None else f"{100 * x:.0f}" for x in own) if own else "-" for own in classes]
    cells = [row["version"], label, _number(row, "releases", 1.0, 2), _percent(row, "confidence_useful")]
    cells += [_percent(row, "accuracy_useful"), each[0], _percent(row, "accuracy_secret"), each[1], over]
    return _table_line([*cells, _percent(row, "averaged_violation_rate")])


def _table_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _percent(row: Row, name: str) -> str:
    """A share; Student's interval may reach beyond what a share can be."""
    high = f"{name}_high"
    return _number({**row, high: min(row[high], 1.0)} if high in row else row, name, 100.0, 1)


def _number(row: Row, name: str, scale: float, digits: int) -> str:
    if row.get(name) is None:
        return "-"
    value = f"{scale * row[name]:.{digits}f}"
    if row.get(f"{name}_low") is None:
        return value
    low, high = (scale * row[f"{name}_{end}"] for end in ("low", "high"))
    # None of these is ever negative, though Student's interval may be.
    return f"{value} [{max(low, 0.0):.{digits}f}, {high:.{digits}f}]"


def _printed_table() -> str:
    """What arithmetic alone says of the paper's table."""
    lines = ["## The paper's table\n"]
    lines.append(
        "**unchecked**: its numbers are of recordings that are not to be had in the form that the paper used. What "
        "follows is arithmetic on the printed numbers, and exact.\n"
    )
    lines += [f"- Impossible: {sentence}" for sentence in impossible_cells()]
    for bound, policy in POLICIES.items():
        own = [line for line in TABLE if line.bound == bound]
        for name, pairs in (
            ("U", [(line.useful, line.per_useful) for line in own]),
            ("S", [(line.secret, line.per_secret) for line in own]),
        ):
            if not shares_exist([(overall, each) for overall, each in pairs if possible(overall, each)]):
                lines.append(
                    f"- The accuracies of {policy} on {name} that are possible one by one cannot all be of the same "
                    "test data: no shares of the three values give every one of them."
                )
    best = {bound: max((x for x in TABLE if x.bound == bound), key=lambda x: x.gap) for bound in POLICIES}
    gaps = ", ".join(f"{POLICIES[line.bound]} {line.gap:.1f} at {line.limit:g}" for line in best.values())
    lines.append(f"- Widest gaps in the table: {gaps}. The text has L_MI 1.2, which the table has not.")
    lines.append(
        "- Three secrets hold at most 1.585 bits: limits of 1.75 and 2 cannot bind on the information itself, only on "
        "its sum along one path, which can be more.\n"
    )
    return "\n".join(lines)


def _signs(signs: Demonstration) -> str:
    """What the printed signs do, on a problem that one release settles."""
    lines = ["## The printed signs\n"]
    lines.append(
        "One sensor names U and says nothing of S: releasing once, then stopping, costs 1, stopping at once 25. The "
        "paper's agent with the signs of its updates as they are printed, and corrected; no entropy bonus.\n"
    )
    if signs.came is None:
        return "\n".join([*lines, "Not run yet: `python -m benchmarks paper-signs`.\n"])
    fields = [field for field in signs.rows[0] if not isinstance(signs.rows[0][field], list)]
    lines += [f"{signs.came}\n", _table_line([field.replace("_", " ") for field in fields])]
    lines.append("|---" * len(fields) + "|")
    lines += [_table_line([_plain(row[field]) for field in fields]) for row in signs.rows]
    return "\n".join([*lines, ""])


def _z_ranges(ranges: Demonstration) -> str:
    """The same study to the letter, with the symbols elsewhere."""
    lines = ["## Where the symbols lie\n", "The paper says that there are fifty, not where.\n"]
    if ranges.came is None:
        return "\n".join([*lines, "Not run yet: `python -m benchmarks paper-z-range`.\n"])
    headings = ("problem", *HEADINGS)
    lines += [f"{ranges.came}\n", _table_line(headings), "|---" * len(headings) + "|"]
    return "\n".join([*lines, *(f"| {row['problem']} {_line(row)}" for row in ranges.rows), ""])


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _readings() -> str:
    lines = ["## How printed lines were read\n", "| the paper prints | taken to the letter |", "|---|---|"]
    return "\n".join([*lines, *map(_table_line, READINGS), ""])


def _left_open(rows: Sequence[Open]) -> str:
    lines = ["## What the paper leaves open\n", "| what | option | taken | the paper | why |", "|---|---|---|---|---|"]
    lines += [_table_line((row.what, row.option, row.taken, row.printed, row.why)) for row in rows]
    return "\n".join([*lines, ""])
