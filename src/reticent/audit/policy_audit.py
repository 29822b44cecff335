"""The audit of a policy of ours: its traces, and what only a policy at hand can be asked: simpler policies, repeated
sessions, a model that is wrong, and people whom the model was not fitted to."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.audit.audit import Context, audit_traces
from reticent.audit.classifiers import retrained
from reticent.audit.comparison import Point, SameUtility, at_same_utility, baseline_points, both_balanced
from reticent.audit.findings import NOTHING_LEARNED, percent
from reticent.audit.measures import Resampler
from reticent.audit.mismatch import Mismatch, mismatch, mixed, moved_apart, sharpened
from reticent.audit.people import PeopleFound, halves, strangers, with_recordings
from reticent.audit.play import play, play_answers
from reticent.audit.posterior import concatenated
from reticent.audit.sessions import AfterSessions, repeated_sessions
from reticent.audit.traces import Traces
from reticent.audit.trial import AuditOptions
from reticent.audit.verdict import Audit
from reticent.data.episodes import episodes_of
from reticent.data.readings import Readings
from reticent.errors import InputError
from reticent.evaluate.estimate import Estimate
from reticent.policy.answer import Answer
from reticent.policy.policy import NEVER, FixedSensor, NoProtection, Policy
from reticent.problem.bound import Unbounded
from reticent.problem.codebook import Codebook
from reticent.problem.enforcement import Penalty
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import Episode
from reticent.process.source import FromCodes

# The paper's no-PUT policy releases so many readings.
OPEN_READINGS = 10
SIMPLE_READINGS, SIMPLE_EPISODES = (1, 3, 10), 8_192
SESSIONS, PEOPLE = 10, 1_024
MISMATCH_EPISODES = 2_048
# Episodes that attackers learn from and are tried on where everybody is judged alone.
PEOPLE_EPISODES = 4_096
# Random traces for the paper's adversary to learn from, at the most.
RANDOM_EPISODES = 8_192
FACTORS, SHARES = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5), (0.1, 0.2, 0.4)
Change = Callable[[Process], Process]


@dataclass(frozen=True)
class WrongModel:
    """What the bound is worth when readings come from another channel than the model's, to somebody who knows it."""

    change: str
    size: float
    found: Mismatch


@dataclass(frozen=True)
class PolicyAudit:
    """The audit of the traces, and the rest. Numbers are estimates. `audited` is what simpler policies are compared
    by: what exact Bayes knows of the audited one where its model is the true one, else the strongest attacker.
    `promise` says what holds by construction, what statistically, and what not at all."""

    audit: Audit
    audited: "Audited"
    baselines: list[Point]
    same_utility: list[SameUtility]
    forgotten: list[AfterSessions] = field(default_factory=list)
    carried: list[AfterSessions] = field(default_factory=list)
    wrong_models: list[WrongModel] = field(default_factory=list)
    by_person: PeopleFound | None = None
    promise: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> list[str]:
        """That of the traces, that over people, and whether something simpler does as well."""
        over_people = [] if self.by_person is None else self.by_person.sentences()
        return [*self.audit.verdict, *over_people, *_simpler(self.audited.secret, self.same_utility)]

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary for one JSON object."""
        rest = asdict(self)
        del rest["audit"]
        return {**self.audit.to_json(), "verdict": self.verdict, **rest}


@dataclass(frozen=True)
class Audited:
    """Balanced accuracies on U and S."""

    useful: Estimate
    secret: Estimate


def _simpler(own: Estimate, others: list[SameUtility]) -> Iterator[str]:
    """The simpler policy that gives away least, if that is less than the audited one does."""
    less = [each for each in others if each.secret is not None and each.secret.value < own.value]
    if not less:
        return
    best = min(less, key=lambda each: each.secret.value if each.secret else 1.0)
    assert best.secret is not None
    name = f"{best.policy}, {best.variant}" if best.variant else best.policy
    clear = "gives away less" if best.secret.high < own.low else "may give away no more"
    yield (
        f"A cheaper alternative: {name}, without bound, is as accurate on the useful value and {clear}: the secret "
        f"is named correctly in {percent(best.secret)}, of this policy in {percent(own)}."
    )


def audit_policy(
    task: Task,
    process: Process,
    policy: Policy,
    episodes: int,
    options: AuditOptions | None = None,
) -> PolicyAudit:
    """With readings drawn from the model, which is then the true one. `quick` leaves out what takes long: random
    traces, repeated sessions and wrong models too."""
    options = options or AuditOptions()
    tell, seed = options.progress, options.seed
    tell("simulating the policy")
    _, traces = play(task, process, policy, episodes, seed)
    random = (
        None
        if options.quick
        else _open(task, lambda process: process, NoProtection(), min(episodes // 2, RANDOM_EPISODES), seed + 1)[1]
    )
    audit = audit_traces(traces, task, None, Context(random, True), options)
    tell("simpler policies")
    points, audited = baseline_points(task, seed), _exact(audit)
    same = at_same_utility(points, audited.useful.value)
    if options.quick:
        return PolicyAudit(audit, audited, points, same)
    tell("repeated sessions")
    forgotten, carried = (repeated_sessions(process, policy, way, SESSIONS, PEOPLE, seed) for way in (False, True))
    tell("wrong models")
    wrong = _wrong_models(process, policy, seed)
    return PolicyAudit(audit, audited, points, same, forgotten, carried, wrong)


def _wrong_models(process: Process, policy: Policy, seed: int) -> list[WrongModel]:
    def found(true: Float[np.ndarray, "A S U Z"]) -> Mismatch:
        return mismatch(process, policy, true, MISMATCH_EPISODES, seed)

    channel = np.asarray(process.channel)
    right = found(channel)
    return [
        *(WrongModel("spread", size, right if size == 1 else found(sharpened(channel, size))) for size in FACTORS),
        *(WrongModel("distance", size, right if size == 1 else found(moved_apart(channel, size))) for size in FACTORS),
        *(WrongModel("others", size, found(mixed(channel, size))) for size in SHARES),
    ]


def audit_answers(
    task: Task,
    answer: Answer,
    episodes: int,
    options: AuditOptions | None = None,
) -> PolicyAudit:
    """Of a policy that sends one answer: when it came, and what it was. Exact Bayes is the table that it publishes."""
    options = options or AuditOptions()
    tell, seed = options.progress, options.seed
    tell("simulating the answers")
    traces = play_answers(answer, episodes, seed)
    times = ", ".join(str(time) for time in answer.rule.times)
    notes = (
        f"A step is a time at which an answer may come: after {times} private readings.",
        "The beliefs of exact Bayes are those that the policy file publishes, estimated when it was made.",
    )
    audit = audit_traces(traces, task, None, Context(None, True, notes), options)
    tell("simpler policies")
    points, audited = baseline_points(task, seed), _exact(audit)
    return PolicyAudit(audit, audited, points, at_same_utility(points, audited.useful.value))


def _exact(audit: Audit) -> Audited:
    exact = next(attack for attack in audit.attacks if attack.fitted_on == NOTHING_LEARNED)
    return Audited(exact.useful.balanced, exact.secret.balanced)


def _strongest(audit: Audit) -> Audited:
    useful, secret = (
        max((getattr(attack, label).balanced for attack in audit.attacks), key=lambda each: each.value)
        for label in ("useful", "secret")
    )
    return Audited(useful, secret)


def audit_on_recordings(
    task: Task,
    process: Process,
    policy: Policy,
    recorded: Readings,
    episodes: int,
    options: AuditOptions | None = None,
) -> PolicyAudit:
    """With what people's sensors said, of people whom the model was not fitted to."""
    options = options or AuditOptions()
    tell, seed = options.progress, options.seed
    codebook = Codebook.of(task.model)
    own, notes = _unseen(task, recorded)
    if (longest := _longest(own)) < task.horizon:
        notes = (*notes, f"Episodes are cut after {longest} readings, for lack of longer recordings.")
        task = replace(task, horizon=longest)
        process = eqx.tree_at(lambda p: p.horizon, process, jnp.asarray(longest))
    codes = FromCodes(jnp.asarray(codebook.codes(own.values)), episodes_of(own, task.horizon))

    def replaying(process: Process) -> Process:
        return process.reading_from(codes)

    tell("simulating the policy")
    _, traces = play(task, replaying(process), policy, episodes, seed, own)
    random = (
        None
        if options.quick
        else _open(task, replaying, NoProtection(), min(episodes, RANDOM_EPISODES), seed + 1, own)[1]
    )
    audit = audit_traces(traces, task, None, Context(random, False, notes), options)
    tell("simpler policies")
    points, audited = list(_simple_points(task, replaying, own, seed + 2)), _strongest(audit)
    tell("person by person")
    limit = task.bound.posterior_limit(len(task.model.secrets))
    people = strangers(_first(traces, PEOPLE_EPISODES), own.people, limit)
    if not options.quick:
        people = with_recordings(people, *_by_halves(task, process, policy, own, seed + 3), own.people)
    same = at_same_utility(points, audited.useful.value)
    return PolicyAudit(audit, audited, points, same, by_person=people)


def _first(traces: Traces, episodes: int) -> Traces:
    return traces.take(np.arange(min(episodes, len(traces))))


def _by_halves(task: Task, process: Process, policy: Policy, own: Readings, seed: int) -> tuple[Traces, Traces]:
    """What is released of the first and of the second half of every recording; of halves that are shorter than
    episodes, shorter episodes."""
    codebook, parts = Codebook.of(task.model), halves(own)
    horizon = min(task.horizon, *map(_longest, parts))
    shorter = eqx.tree_at(lambda p: p.horizon, process, jnp.asarray(horizon))
    sources = [FromCodes(jnp.asarray(codebook.codes(part.values)), episodes_of(part, horizon)) for part in parts]
    earlier, later = (
        play(replace(task, horizon=horizon), shorter.reading_from(source), policy, PEOPLE_EPISODES, seed + k, part)[1]
        for k, (source, part) in enumerate(zip(sources, parts, strict=True))
    )
    return earlier, later


def _open(
    task: Task, change: Change, policy: Policy, episodes: int, seed: int, recorded: Readings | None = None
) -> tuple[Episode, Traces]:
    """A policy that releases what it reads, ten times, without bound."""
    free = replace(task, bound=Unbounded(), enforcement=Penalty(), horizon=min(task.horizon, OPEN_READINGS))
    return play(free, change(Process.of(free)), policy, episodes, seed, recorded)


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
            ("fixed sensor", sensor, FixedSensor(jnp.asarray(number), jnp.asarray(NEVER)))
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
    found = [both_balanced(concatenated([part[name] for part in said]), subject, resampler) for name in said[0]]
    useful, secret = (max((each[i] for each in found), key=lambda estimate: estimate.value) for i in (0, 1))
    return useful, secret
