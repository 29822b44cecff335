"""The page of the paper's synthetic study."""

from reticent.report.figures import guarantee_overview, overview, study_figures
from reticent.report.page import Content
from reticent.report.paper.studies import found
from reticent.report.results import Results
from reticent.report.tables import summary
from reticent.report.words import A2C, PPO, method_words

PRINTED = {
    "time": "To the letter: how long the paper's agent goes on under its printed cost, and how sure of U the provider "
    "then is.",
    "accuracy": "To the letter: the provider's accuracy on U (red) and on S (blue).",
    "cost": "To the letter: the printed cost, which does not charge for crossing the bound and then stopping.",
    "violations": "To the letter: the printed cost does not keep an agent from crossing the bound.",
}
CAPTIONS = {
    **{f"letter_{kind}_{what}": words for kind in ("confidence", "information") for what, words in PRINTED.items()},
    "guarantee_cost": "Mean cost under the same bounds, by how they are kept.",
    "guarantee_useful": "What the provider learns of U, by how the bound is kept.",
    "guarantee_violations": "Zero by construction under withhold and coarsen: no belief that the provider can hold "
    "reaches the bound.",
    "confidence_time": "How long the agent goes on, and how sure the provider is of U when it stops.",
    "confidence_accuracy": "The provider's accuracy on U (red) and on S (blue) under a bound on its confidence in S.",
    "confidence_cost": "Every baseline has its stopping threshold tuned on a seed of its own. No policy can cost less "
    "than the certified lower bound, up to the interval shown.",
    "confidence_violations": "Under a penalty a policy may cross the bound and pay for it.",
    "information_time": "A sensor whose next reading would carry the sum of information over the bound is masked.",
    "information_accuracy": "The bound is on the sum of information along the path, not on the confidence in a secret.",
    "information_cost": "The same baselines under the same mask.",
    "information_violations": "Zero by construction: what would cross the bound cannot be chosen.",
    "leakage": "Cost against the information about S that episodes give on average. A limit on every path, or for "
    "every belief, also covers the worst episode; a limit on average does not. Coarsening never crosses its bound; "
    "the rule of an answer is confirmed by simulation, with a chance of error of 0.1 %.",
    "trade_off": "Stopping time and accuracy as the price λ of a wrong guess varies, within the same bound.",
}


def synthetic_content(results: Results) -> Content:
    """Figures, one line per bound, enforcement and method, and what the numbers mean."""
    rows = results.rows
    figures = study_figures(rows)
    agents = rows.filter(rows["method"].is_in([A2C, PPO]))
    fields = {
        "settings": {
            "draws of the problem": str(rows["draw"].n_unique()),
            "training seeds": f"0 to {agents['seed'].max()}",
            "environment steps per training run": f"{agents['effort'].max():,}",
            "episodes per evaluation": f"{rows['episodes'].max():,}",
        },
        "table": summary(rows),
        "marked": method_words(PPO),
        "promises": results.promises,
        "verdicts": found(rows),
        "violation_cost": f"{rows['violation_cost'].max():g}",
    }
    pictures = {"guarantee": guarantee_overview(figures)} if "guarantee_cost" in figures else {}
    whole = {f"{prefix}synthetic": prefix for prefix in ("", "letter_") if f"{prefix}information_time" in figures}
    pictures |= {name: overview(figures, prefix) for name, prefix in whole.items()}
    return Content("study.html", figures, CAPTIONS, fields, pictures)
