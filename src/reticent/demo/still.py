"""The static half of the demo: what a provider learns of both labels, without protection and under the guarantee.

Readings are replayed from people whom the model was not fitted to; attackers are judged on people whom they have not
learned from. Accuracies are estimates.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from reticent.audit.audit import Context, audit_traces
from reticent.audit.evidence import Evidence
from reticent.audit.exact_bayes import ExactBayes
from reticent.audit.findings import Attack
from reticent.audit.play import play
from reticent.audit.traces import Traces
from reticent.audit.trial import AuditOptions, Trial
from reticent.data.episodes import episodes_of
from reticent.data.readings import Readings
from reticent.demo.recorded import people, problem
from reticent.demo.session import sessions
from reticent.policy.heuristics import OneStepLookahead
from reticent.policy.policy import NoProtection, Policy
from reticent.problem.bound import Bound, Confidence, Unbounded
from reticent.problem.codebook import Codebook
from reticent.problem.enforcement import Coarsen, Enforcement, Penalty
from reticent.problem.model import Model
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import Episode
from reticent.process.source import FromCodes

# At `SHOWN` the guarantee is audited and replayed; at the others it is attacked only.
BOUNDS, SHOWN = (0.52, 0.55, 0.65, 0.7, 0.8), 0.6
READINGS = 10
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How much is played: episodes of each setting, and the bounds."""

    episodes: int = 2_000
    bounds: tuple[float, ...] = BOUNDS
    shown: float = SHOWN
    seed: int = 0

    @property
    def parts(self) -> int:
        """How often `still` says what it does next."""
        return len(self.bounds) + 2


DEFAULT = Effort()


@dataclass(frozen=True, eq=False)
class Played:
    """Episodes of a task, and what was sent."""

    task: Task
    records: Episode
    traces: Traces

    def learned(self, attacks: list[Attack]) -> dict[str, Any]:
        """What the strongest attacker learned of each label, and the highest confidence in a secret at any moment."""
        return {
            "releases": float(np.mean(self.records.releases)),
            "highest": float(np.max(self.records.highest_confidence)),
            "useful": _strongest(attacks, "useful"),
            "secret": _strongest(attacks, "secret"),
        }


def _strongest(attacks: list[Attack], label: str) -> dict[str, Any]:
    best = max(attacks, key=lambda attack: getattr(attack, label).balanced.value)
    return {"attacker": best.attacker, **asdict(getattr(best, label).balanced)}


def still(tell: Tell, effort: Effort = DEFAULT) -> dict[str, Any]:
    """Everything that the page shows, as a plain dictionary."""
    stage, options = Stage.of(effort), AuditOptions(effort.seed, quick=True)
    tell(f"{READINGS} readings without protection")
    unprotected = stage.played(Unbounded(), Penalty(), lambda _: NoProtection())
    rows = [{"limit": None, **unprotected.learned(attacks_on(unprotected, options))}]
    for limit in effort.bounds:
        tell(f"attacking the guarantee at {100 * limit:g} %")
        guarded = stage.played(Confidence(limit), Coarsen(), OneStepLookahead)
        rows.append({"limit": limit, **guarded.learned(attacks_on(guarded, options))})
    tell(f"auditing the guarantee at {100 * effort.shown:g} %")
    guarded = stage.played(Confidence(effort.shown), Coarsen(), OneStepLookahead)
    audit = audit_traces(guarded.traces, guarded.task, None, Context(None, False), options)
    rows.append({"limit": effort.shown, **guarded.learned(audit.attacks)})
    return {
        "shown": effort.shown,
        "episodes": effort.episodes,
        "readings": READINGS,
        "secrets": list(stage.model.secrets),
        "useful": list(stage.model.useful),
        "people": list(stage.recorded.people),
        "rows": sorted(rows, key=lambda row: row["limit"] or 0.0),
        "verdict": audit.verdict,
        "checks": [asdict(check) for check in audit.checks],
        "contenders": audit.contenders,
        "sessions": stage.sessions(guarded),
    }


def attacks_on(played: Played, options: AuditOptions) -> list[Attack]:
    """Exact Bayes, and attackers that learned from what was sent of other people."""
    trial = Trial(played.traces, options)
    found = Evidence(trial.subject, trial.resampler, None)
    found.add_exact(ExactBayes(played.task.model.prior, "Bayes with the fitted model"))
    trial.attack_own(found)
    return found.attacks


@dataclass(frozen=True, eq=False)
class Stage:
    """The shipped model and people, ready to be played by."""

    effort: Effort
    model: Model
    recorded: Readings
    codes: FromCodes

    @classmethod
    def of(cls, effort: Effort) -> "Stage":
        """Read from the package."""
        model = problem()
        recorded = people(model)
        codes = Codebook.of(model).codes(recorded.values)
        return cls(effort, model, recorded, FromCodes(jnp.asarray(codes), episodes_of(recorded, READINGS)))

    def played(self, bound: Bound, enforcement: Enforcement, policy_in: Callable[[Process], Policy]) -> Played:
        """Episodes of the recorded people, and what was sent."""
        task = Task(self.model, bound, enforcement=enforcement, horizon=READINGS)
        process, effort = Process.of(task), self.effort
        replayed = process.reading_from(self.codes)
        return Played(task, *play(task, replayed, policy_in(process), effort.episodes, effort.seed, self.recorded))

    def sessions(self, played: Played) -> list[dict[str, Any]]:
        """Those to be replayed step by step."""
        codes, rows = np.asarray(self.codes.codes), np.asarray(played.records.row)
        return sessions(self.model, codes, rows, played.traces, self.recorded.people)
