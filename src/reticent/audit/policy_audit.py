"""The audit of a policy of ours: its traces, and what only a policy at hand can be asked: simpler policies, repeated
sessions, a model that is wrong, and people whom the model was not fitted to."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from reticent.audit.attackers import retrained
from reticent.audit.audit import Tell, audit_traces
from reticent.audit.comparison import Point, SameUtility, at_same_utility, baseline_points, both_balanced
from reticent.audit.confidence import together
from reticent.audit.findings import NOTHING_LEARNED, Attack, Audit
from reticent.audit.measures import Resampler
from reticent.audit.mismatch import Mismatch, mismatch, mixed, moved_apart, sharpened
from reticent.audit.play import play, play_answers
from reticent.audit.sessions import AfterSessions, repeated_sessions
from reticent.audit.traces import Traces
from reticent.data.episodes import episodes_of
from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.estimate import Estimate
from reticent.policy.answer import Answer
from reticent.policy.policy import FixedSensor, NoProtection, Policy
from reticent.problem.bound import NO_BOUND
from reticent.problem.fit import Codebook
from reticent.problem.task import Task
from reticent.process.recorded import Recorded
from reticent.process.release import ReleaseProcess
from reticent.process.rollout import Episode

# The paper's no-PUT policy releases so many readings.
OPEN_READINGS = 10
SIMPLE_READINGS, SIMPLE_EPISODES = (1, 3, 10), 8_192
SESSIONS, PEOPLE = 10, 4_096
MISMATCH_EPISODES = 8_192
FACTORS, SHARES = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5), (0.1, 0.2, 0.4)
NEVER_SURE = jnp.asarray(2.0)
Change = Callable[[ReleaseProcess], ReleaseProcess]


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
    _, random = _open(task, lambda process: process, NoProtection(), episodes // 2, seed + 1)
    audit = audit_traces(traces, task, random, seed, tell, model_is_true=True)
    tell("simpler policies")
    points = baseline_points(task, seed)
    tell("repeated sessions")
    forgotten, carried = (repeated_sessions(process, policy, way, SESSIONS, PEOPLE, seed) for way in (False, True))
    tell("wrong models")
    channel = np.asarray(process.channel)
    changes = [("spread of the readings times", size, sharpened(channel, size)) for size in FACTORS]
    changes += [("distance between the pairs' readings times", size, moved_apart(channel, size)) for size in FACTORS]
    changes += [("share of readings that others give", size, mixed(channel, size)) for size in SHARES]
    wrong = [
        WrongModel(change, size, mismatch(process, policy, true, MISMATCH_EPISODES, seed))
        for change, size, true in changes
    ]
    same = at_same_utility(points, _exact(audit).useful.balanced.value)
    return PolicyAudit(audit, points, same, forgotten, carried, wrong)


def audit_answers(task: Task, answer: Answer, episodes: int, seed: int = 0, tell: Tell = lambda _: None) -> PolicyAudit:
    """Of a policy that sends one answer: when it came, and what it was. Exact Bayes is the table that it publishes."""
    tell("answering")
    traces = play_answers(answer, episodes, seed)
    times = ", ".join(str(time) for time in answer.rule.times)
    notes = (
        f"A step is a time at which an answer may come: after {times} private readings.",
        "The beliefs of exact Bayes are those that the policy file publishes, estimated when it was made.",
    )
    audit = audit_traces(traces, task, None, seed, tell, notes, model_is_true=True)
    tell("simpler policies")
    points = baseline_points(task, seed)
    return PolicyAudit(audit, points, at_same_utility(points, _exact(audit).useful.balanced.value))


def _exact(audit: Audit) -> Attack:
    return next(attack for attack in audit.attacks if attack.fitted_on == NOTHING_LEARNED)


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
    _, random = _open(task, replaying, NoProtection(), episodes, seed + 1, own)
    audit = audit_traces(traces, task, random, seed, tell, notes, model_is_true=False)
    tell("simpler policies")
    best = max(attack.useful.balanced.value for attack in audit.attacks)
    points = list(_simple_points(task, replaying, own, seed + 2))
    return PolicyAudit(audit, points, at_same_utility(points, best))


def _open(
    task: Task, change: Change, policy: Policy, episodes: int, seed: int, recorded: Readings | None = None
) -> tuple[Episode, Traces]:
    """A policy that releases what it reads, ten times, without bound."""
    free = replace(task, bound=NO_BOUND, enforce="penalty", horizon=min(task.horizon, OPEN_READINGS))
    return play(free, change(ReleaseProcess(free)), policy, episodes, seed, recorded)


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


def _simple_points(task: Task, change: Change, recorded: Readings, seed: int) -> Iterator[Point]:
    """One reading, three, ten, of random sensors or of one: to attackers who learned from the other half of the
    people."""
    for name, variant, policy in (
        ("random sensor", "", NoProtection()),
        *(
            ("fixed sensor", sensor, FixedSensor(jnp.asarray(number), NEVER_SURE))
            for number, sensor in enumerate(task.model.sensors)
        ),
    ):
        _, traces = _open(task, change, policy, SIMPLE_EPISODES, seed, recorded)
        for readings in SIMPLE_READINGS:
            if readings <= traces.longest:
                useful, secret = _retrained(traces.until(readings), seed)
                yield Point(name, variant, float(readings), useful, secret, float(readings))


def _retrained(traces: Traces, seed: int) -> tuple[Estimate, Estimate]:
    """Balanced accuracies on U and S of the strongest quick attacker, each half of the people judged by the other."""
    half = np.isin(traces.person, np.unique(traces.person)[::2])
    rows = np.concatenate([np.flatnonzero(half), np.flatnonzero(~half)])
    said = [retrained(traces.take(~part), traces.take(part)) for part in (half, ~half)]
    subject = traces.take(rows)
    resampler = Resampler(np.unique(subject.person, return_inverse=True)[1], seed)
    found = [both_balanced(together([part[name] for part in said]), subject, resampler) for name in said[0]]
    useful, secret = (max((each[i] for each in found), key=lambda estimate: estimate.value) for i in (0, 1))
    return useful, secret
