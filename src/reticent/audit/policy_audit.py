"""The audit of a policy of ours: its traces, and what only a policy at hand can be asked: simpler policies, repeated
sessions, a model that is wrong, and people whom the model was not fitted to."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from reticent.audit.attackers import retrained
from reticent.audit.audit import Tell, audit_traces
from reticent.audit.comparison import Point, SameUtility, at_same_utility, baseline_points
from reticent.audit.findings import NOTHING_LEARNED, Audit
from reticent.audit.measures import balanced_accuracy
from reticent.audit.mismatch import Mismatch, mismatch, mixed, sharpened
from reticent.audit.play import play
from reticent.audit.sessions import AfterSessions, repeated_sessions
from reticent.audit.traces import Traces
from reticent.data.episodes import episodes_of
from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.policy.policy import NoProtection, Policy
from reticent.problem.bound import NO_BOUND
from reticent.problem.fit import Codebook
from reticent.problem.task import Task
from reticent.process.recorded import Recorded
from reticent.process.release import ReleaseProcess

# The paper's no-PUT policy releases so many readings.
RANDOM_READINGS = 10
SESSIONS, PEOPLE = 10, 4_096
MISMATCH_EPISODES = 8_192
FACTORS, SHARES = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5), (0.1, 0.2, 0.4)


@dataclass(frozen=True)
class WrongModel:
    """What the bound is worth when readings come from another channel than the model's, to somebody who knows it."""

    change: str
    size: float
    found: Mismatch


@dataclass(frozen=True)
class PolicyAudit:
    """The audit of the traces, and the rest. Numbers are estimates."""

    audit: Audit
    baselines: list[Point]
    same_utility: list[SameUtility]
    forgotten: list[AfterSessions] = field(default_factory=list)
    carried: list[AfterSessions] = field(default_factory=list)
    wrong_models: list[WrongModel] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary for one JSON object."""
        rest = asdict(self)
        del rest["audit"]
        return {**self.audit.to_json(), **rest}


def audit_policy(
    task: Task, process: ReleaseProcess, policy: Policy, episodes: int, seed: int = 0, tell: Tell = lambda _: None
) -> PolicyAudit:
    """With readings drawn from the model, which is then the true one."""
    tell("playing the policy")
    _, traces = play(task, process, policy, episodes, seed)
    _, random = _random(task, lambda process: process, episodes // 2, seed + 1, None)
    audit = audit_traces(traces, task, random, seed, tell, model_is_true=True)
    exact = next(attack for attack in audit.attacks if attack.fitted_on == NOTHING_LEARNED)
    tell("simpler policies")
    points = baseline_points(task, seed)
    tell("repeated sessions")
    forgotten, carried = (repeated_sessions(process, policy, way, SESSIONS, PEOPLE, seed) for way in (False, True))
    tell("wrong models")
    channel = np.asarray(process.channel)
    changes = [("spread of the readings times", size, sharpened(channel, size)) for size in FACTORS]
    changes += [("share of readings that others give", size, mixed(channel, size)) for size in SHARES]
    wrong = [
        WrongModel(change, size, mismatch(process, policy, true, MISMATCH_EPISODES, seed))
        for change, size, true in changes
    ]
    same = at_same_utility(points, exact.useful.balanced.value)
    return PolicyAudit(audit, points, same, forgotten, carried, wrong)


def audit_on_recordings(
    task: Task,
    process: ReleaseProcess,
    policy: Policy,
    recorded: Readings,
    episodes: int,
    seed: int = 0,
    tell: Tell = lambda _: None,
) -> PolicyAudit:
    """With what people's sensors said, of people whom the model was not fitted to."""
    codebook = Codebook.of(task.model)
    own, notes = _unseen(task, recorded)
    if (longest := _longest(own)) < task.horizon:
        notes = (*notes, f"Episodes are cut after {longest} readings, for lack of longer recordings.")
        task = replace(task, horizon=longest)
        process = eqx.tree_at(lambda p: p.horizon, process, jnp.asarray(longest))
    codes = Recorded(jnp.asarray(codebook.codes(own.values)), episodes_of(own, task.horizon))

    def replaying(process: ReleaseProcess) -> ReleaseProcess:
        return process.replaying(codes)

    tell("playing the policy")
    _, traces = play(task, replaying(process), policy, episodes, seed, own)
    _, random = _random(task, replaying, episodes, seed + 1, own)
    audit = audit_traces(traces, task, random, seed, tell, notes, model_is_true=False)
    tell("simpler policies")
    best = max(attack.useful.balanced.value for attack in audit.attacks)
    points = list(_random_points(random))
    return PolicyAudit(audit, points, at_same_utility(points, best))


def _random(
    task: Task,
    change: Callable[[ReleaseProcess], ReleaseProcess],
    episodes: int,
    seed: int,
    recorded: Readings | None,
):
    horizon = min(task.horizon, RANDOM_READINGS)
    free = replace(task, bound=NO_BOUND, enforce="penalty", horizon=horizon)
    return play(free, change(ReleaseProcess(free)), NoProtection(), episodes, seed, recorded)


def _unseen(task: Task, recorded: Readings) -> tuple[Readings, tuple[str, ...]]:
    """Recordings of people whom the model was not fitted to."""
    model = task.model
    assert model.fitted is not None
    for what, has, needs in (
        ("sensors", recorded.sensors, model.sensors),
        ("secrets", recorded.secrets, model.secrets),
        ("useful values", recorded.useful_values, model.useful),
    ):
        if has != needs:
            raise InputError(f"The model knows the {what} {list(needs)}, but the recordings have {list(has)}.")
    known = set(model.fitted.get("people", ()))
    others = tuple(i for i, person in enumerate(recorded.people) if person not in known)
    if len(others) < 2:
        raise InputError(
            f"The model was fitted to {sorted(known)}; {len(others)} of the {len(recorded.people)} people recorded are "
            "others, and attackers need two or more. Fit a model with `reticent fit --leave-out NAME NAME ...`."
        )
    notes = (*recorded.notes, f"Only the {len(others)} people whom the model was not fitted to.")
    return recorded.of(others), notes


def _longest(recorded: Readings) -> int:
    """So many readings that every pair of labels still has half of its longest stream to start from."""
    pair = recorded.secret * len(recorded.useful_values) + recorded.useful
    return max(1, min(int(recorded.left[pair == one].max()) for one in np.unique(pair)) // 2)


def _random_points(random: Traces) -> list[Point]:
    """One random reading, two, and so on: to attackers who learned from half of the people."""
    people = np.unique(random.person)
    seen = np.isin(random.person, people[::2])
    points = []
    for length in (1, 2, 3, 5, 10):
        if length > random.longest:
            continue
        short = random.until(length)
        said = retrained(short.take(seen), short.take(~seen))
        useful, secret = (
            max(balanced_accuracy(each.fair_guess(label), getattr(random, label)[~seen]) for each in said.values())
            for label in ("useful", "secret")
        )
        points.append(Point("random sensor", float(length), useful, secret, float(length)))
    return points
