"""Panels of providers: what attackers get of people never learned from, how often a claim about new people holds, and
what a decision costs.

On recordings each person's turn comes to be measured by a model, a panel and attackers that learned from others.
"""

import sys
import time
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import stats

from benchmarks.catalogue import Measured, Rows
from benchmarks.record import interval
from benchmarks.recordings import OBJECTIVE, data
from reticent import Coarsen, Confidence, Model, OneStepLookahead, Process, Task
from reticent.audit.people import Person, judged_by
from reticent.audit.play import play
from reticent.audit.traces import Traces
from reticent.data.episodes import episodes_of
from reticent.data.load import Source, load
from reticent.data.readings import Readings, readings, uniform_prior
from reticent.evaluate.claim import Wanted, grid
from reticent.evaluate.estimate import mean, rate
from reticent.fit.model import Codes, fit_coded
from reticent.fit.panel import fit_panel
from reticent.guard.rules import TaskRules
from reticent.problem.codebook import Codebook
from reticent.process.source import FromCodes

# Set before anything was measured: those of the prototype that the panel goes back to.
LIMITS, HORIZON, SHARPEN = (0.6, 0.65, 0.7), 3, 2.0
EPISODES, PARTS = 2_048, 4
PANELS = (1, 7, 20)


def dsa() -> Measured:
    """Codes by k-means."""
    return _recordings(30)


def dsa_learned() -> Measured:
    """Codes on the outputs of classifiers."""
    return _recordings("learned")


def _recordings(codes: Codes) -> Measured:
    recorded = readings(load(Source("dsa", data())))
    people = np.arange(len(recorded.people))
    found: dict[tuple[float, str], list[Person]] = {}
    for part in np.array_split(people, PARTS):
        others, own = recorded.of(np.setdiff1d(people, part).tolist()), recorded.of(part.tolist())
        model, coded = fit_coded(others, codes, 0, uniform_prior(others))
        models = {
            "pooled": model,
            "panel of people": fit_panel(model, others, coded, "people"),
            "panel of people, sharpened by 2": fit_panel(model, others, coded, "people", SHARPEN),
        }
        for limit in LIMITS:
            for name, each in models.items():
                print(part, limit, name, file=sys.stderr, flush=True)
                learned = _released(each, limit, others, coded, 1)
                judged = _released(each, limit, own, Codebook.of(model).codes(own.values), 2)
                found.setdefault((limit, name), []).extend(judged_by(learned, judged, recorded.people, limit).people)
    rows = [_row(limit, name, people) for (limit, name), people in found.items()]
    how = "by k-means, 30 per sensor" if codes != "learned" else "on the outputs of a classifier per sensor"
    notes = [
        f"DSA, {len(people)} people in {PARTS} parts; each part is measured with models, panels and attackers that "
        f"learned from the other parts. Codes {how}. One-step lookahead, coarsening, at most {HORIZON} releases, all "
        f"set before anything was measured; {EPISODES:,} episodes to learn from and as many to be tried on. Of "
        "each person the balanced accuracies of logistic regression or boosted trees, whichever is higher; means over "
        "people with normal intervals. Over: people whose secret is named right in more than the bound.",
    ]
    return rows, notes


def _released(model: Model, limit: float, recorded: Readings, codes: np.ndarray[Any, Any], seed: int) -> Traces:
    task = Task(model, Confidence(limit), OBJECTIVE, Coarsen(), HORIZON)
    process = Process.of(task)
    policy = OneStepLookahead(process, jnp.asarray(1.0))
    source = FromCodes(jnp.asarray(codes), episodes_of(recorded, HORIZON))
    return play(task, process.reading_from(source), policy, EPISODES, seed, recorded)[1]


def _row(limit: float, name: str, people: list[Person]) -> dict[str, Any]:
    secret, useful = ([getattr(person, label).value for person in people] for label in ("secret", "useful"))
    row: dict[str, Any] = {"bound": limit, "model": name}
    for label, values in (("useful", useful), ("secret", secret), ("gap", np.subtract(useful, secret))):
        row |= interval("gap" if label == "gap" else f"accuracy_{label}", mean(values))
    return {**row, "worst_secret": max(secret), "people_over": sum(value > limit for value in secret)}


# The population: the secret of a person is named right in a share that grows with the model's bound, at a pace that is
# the person's own. So the truth about every bound is known.
DRAWS, SHARES = 4_000, (0.7, 0.9)
CLAIMED, SPREAD = 0.65, 0.5


def claims() -> Measured:
    """How often a claim by learn-then-test holds, over draws of people from a population that is known."""
    rows: Rows = []
    for share in SHARES:
        wanted = Wanted(CLAIMED, 0.9, share)
        for people in (wanted.people_needed, 2 * wanted.people_needed, 4 * wanted.people_needed):
            rows.append(_claimed(wanted, people))
    notes = [
        f"{DRAWS:,} draws of people each. A person's secret is named right in a share of .5 + t (b - .5) with a model "
        f"bound of b, where ln t is normal with deviation {SPREAD:g}: so of every bound it is known for which share of "
        "all people it keeps to L = .65. Five bounds from .53 to .65 are tried in turn. A draw holds if of the bounds "
        "that it accepts none breaks the claim.",
    ]
    return rows, notes


def _claimed(wanted: Wanted, people: int) -> dict[str, Any]:
    rng = np.random.default_rng(people)
    bounds = np.array(grid(0.5, wanted.limit, 5))
    # A person keeps to L with the bound b where t <= (L - .5) / (b - .5).
    reach = np.log((wanted.limit - 0.5) / (bounds - 0.5))
    kept = stats.norm.cdf(reach / SPREAD)
    pace = rng.normal(0, SPREAD, (DRAWS, people))
    over = (pace[:, :, None] > reach).sum(1)
    accepted = np.logical_and.accumulate([[wanted.accepts(int(k), people) for k in own] for own in over], axis=1)
    holds = ~(accepted & (kept < wanted.share)).any(1)
    made = accepted[:, 0]
    taken = bounds[np.maximum(accepted.sum(1) - 1, 0)][made]
    return {
        "share": wanted.share,
        "level": wanted.level,
        "people": people,
        "claims_made": float(made.mean()),
        **interval("claims_hold", rate(holds)),
        "mean_bound_taken": float(taken.mean()) if made.any() else None,
    }


def decisions() -> Measured:
    """What one decision costs in numpy, as a gateway computes it, beside one without a panel."""
    rows: Rows = []
    for size in (0, *PANELS):
        rules = TaskRules(Task(_model_with_panel(size), Confidence(0.65), enforcement=Coarsen()))
        rows.append({"providers_beside_the_model": size, "decisions_per_cpu_second": _per_second(rules)})
    for row in rows:
        row["share_of_those_without_panel"] = row["decisions_per_cpu_second"] / rows[0]["decisions_per_cpu_second"]
    return rows, ["Public rules of five sensors with 30 symbols, two secrets and two useful values, on one core."]


def _model_with_panel(size: int) -> Model:
    """Laws that are about as far apart as fitted ones."""
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.full(30, 3.0), (5, 1, 1)) * rng.lognormal(0, 0.3, (size + 1, 5, 2, 2, 30))
    own, *others = laws / laws.sum(-1, keepdims=True)
    names = {"secrets": ["s0", "s1"], "useful": ["u0", "u1"], "sensors": list("abcde")}
    return Model(channel=own, **names, panel=[{"channel": each} for each in others])


def _per_second(rules: TaskRules, seconds: float = 3.0) -> float:
    """Public states at beliefs that random releases lead to, so that all are solved anew."""
    rng = np.random.default_rng(0)
    panel = None if rules.panel is None else rules.panel.prior
    rules.public(rules.prior, 0.0, panel)
    started, done = time.process_time(), 0
    while time.process_time() - started < seconds:
        tilt = rng.uniform(0.8, 1.25, rules.prior.shape)
        belief, others = rules.prior * tilt, None if panel is None else panel * tilt
        rules.public(belief / belief.sum(), 0.0, None if others is None else others / others.sum((1, 2), keepdims=True))
        done += 1
    return done / (time.process_time() - started)
