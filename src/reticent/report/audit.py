"""The page of an audit: the verdict, then the evidence."""

import json
from pathlib import Path

from reticent.report.audit_figures import audit_figures
from reticent.report.audit_tables import (
    HEADINGS,
    attack_rows,
    attack_title,
    leakage_rows,
    observer_rows,
    same_utility_rows,
    session_rows,
    spaced,
)
from reticent.report.moving_audit import write_moving_audit_report
from reticent.report.page import render_page, save_figures

CAPTIONS = {
    "attackers": "At the end of episodes, on people or episodes not used for training. Bars: 95 % intervals. Dashed: "
    "chance level.",
    "over_time": "Balanced accuracy on the secret by step, of exact Bayes and of attackers trained on own traces.",
    "over_time_useful": "Balanced accuracy on the useful value by step.",
    "learning": "A curve that still rises means that an audit with more traces may find a larger leak.",
    "observers": "The strongest attacker that sees only one aspect of the releases.",
    "parts": "The strongest attacker that sees only one sensor or one release: where the leak is.",
    "calibration": "Accuracy by belief in the most likely secret. On the line: calibrated; below it: overconfident.",
    "same_utility": "Further left is better: lower accuracy on the secret at the same accuracy on the useful value.",
    "sessions": "Repeated sessions with the same secret. Forgotten: every session starts from the prior, and the "
    "adversary combines all sessions. Carried: a session starts from the last belief, with U drawn anew in each.",
    "wrong_spread": "Readings with a smaller (left of 1) or larger spread than in the model. The adversary knows the "
    "true spread, the device does not.",
    "wrong_distance": "Readings of different hidden pairs further apart (right of 1) or closer together than in the "
    "model.",
    "wrong_others": "A share of the readings comes from another hidden pair. The adversary knows the share.",
}


def write_audit_report(folder: Path) -> Path:
    """`report.html` and `figures/` from `audit.json` in the folder."""
    found = json.loads((folder / "audit.json").read_text())
    if "justified" in found:
        return write_moving_audit_report(folder, found)
    figures = audit_figures(found)
    save_figures(folder / "figures", figures)
    provenance = {"title": found["title"], **found["provenance"]}
    bounded = [each for each in found["attacks"] if each["over"]]
    text = render_page(
        "audit.html",
        provenance,
        figures,
        CAPTIONS,
        found=found,
        headings=HEADINGS,
        table=attack_rows(found),
        over=[(attack_title(each), spaced(each["over"])) for each in bounded],
        observers=observer_rows(found["observers"]),
        parts=observer_rows([*found["by_sensor"], *found["by_step"]]),
        leakage=leakage_rows(found),
        same_utility=same_utility_rows(found),
        sessions=session_rows(found),
        settings={
            "what was audited": found["subject"],
            "its SHA-256": found["digest"],
            "seed": found["seed"],
            "judged on": f"{found['episodes']:,} episodes"
            + (
                f" of {found['people']} people, each judged by attackers who had not met them"
                if found["people"]
                else ""
            ),
            "splits": found["splits"],
        },
    )
    page = folder / "report.html"
    page.write_text(text, encoding="utf-8")
    return page
