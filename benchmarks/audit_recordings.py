"""The audit of the policies of `reticent reproduce`, on people whom neither belief, model nor policy has met."""

import sys
from typing import Any

import jax.numpy as jnp

from benchmarks.catalogue import Measured
from benchmarks.record import interval
from benchmarks.recordings import data
from reticent import Confidence, Information, Objective, OneStepLookahead, Process, Task
from reticent.audit.audit import Context, audit_traces
from reticent.audit.findings import WORDS
from reticent.audit.play import play, play_readings
from reticent.audit.traces import Traces
from reticent.data.episodes import episodes_of
from reticent.data.load import Source, load
from reticent.data.readings import Readings, readings, uniform_prior
from reticent.fit.model import fit_model
from reticent.policy.policy import NoProtection, Policy
from reticent.problem.bound import Bound, Unbounded
from reticent.problem.codebook import Codebook
from reticent.problem.enforcement import Coarsen
from reticent.process.source import FromCodes
from reticent.study.learned import Conditions, learn_provider, standardised
from reticent.study.methods import METHODS

EPISODES, STEPS = 4_096, 60_000
CONDITIONS, GUARANTEE = Conditions(), (0.52, 0.65)
OBJECTIVE = Objective(CONDITIONS.time_cost)


def dsa() -> Measured:
    return _audit("dsa")


def motionsense() -> Measured:
    return _audit("motionsense")


def _audit(name) -> Measured:
    recorded = readings(load(Source(name, data())))
    learned_from, held_out, audited = _people(recorded)
    scaled = standardised(recorded, learned_from)
    subject = scaled.of(audited)
    provider = learn_provider(scaled.of(learned_from), scaled.of(held_out), CONDITIONS, 0)

    def traces(bound: Bound, policy: Policy, seed: int = 0) -> Traces:
        process = Process.over(provider, subject, bound, OBJECTIVE, CONDITIONS.readings)
        return play_readings(process, policy, EPISODES, seed, subject)[1]

    random = traces(Unbounded(), NoProtection(), 1)
    rows = [_audited("no protection", None, traces(Unbounded(), NoProtection()), random)]
    for title, limit, bound in (
        ("belief-PDRP", "0.65", Confidence(0.65)),
        ("belief-PDRP", "0.95", Confidence(0.95)),
        ("MI-PDRP", "0.5 bits", Information(0.5)),
    ):
        trained_on = Process.over(provider, scaled.of(held_out), bound, OBJECTIVE, CONDITIONS.readings)
        agent = METHODS["ppo"].on_recordings(trained_on, 0, STEPS, lambda *_: None)
        rows.append(_audited(title, limit, traces(bound, agent), random))
    fitted_to = recorded.of(learned_from + held_out)
    model = fit_model(fitted_to, prior=uniform_prior(fitted_to))
    own = recorded.of(audited)
    codes = FromCodes(jnp.asarray(Codebook.of(model).codes(own.values)), episodes_of(own, CONDITIONS.readings))
    for limit in GUARANTEE:
        task = Task(model, Confidence(limit), OBJECTIVE, Coarsen(), CONDITIONS.readings)
        process = Process.of(task)
        policy = OneStepLookahead(process, jnp.asarray(1.0))
        _, released = play(task, process.reading_from(codes), policy, EPISODES, 0, own)
        rows.append(_audited("guarantee (coarsen)", f"{limit:g}", released, None))
    notes = [
        f"{len(learned_from + held_out)} people to learn belief, model and policies from (the quick setting of "
        f"`reticent reproduce`), {len(audited)} others to audit, {EPISODES:,} episodes. Each is judged by "
        "attackers who learned from the others: naive Bayes, logistic regression, n-grams, boosted trees and an LSTM "
        "on the policy's own traces and, but for the guarantee, whose symbols never came in them, on random ones. "
        "Balanced accuracies, of the strongest on S and of the strongest on U; bits about S are a lower bound. "
        "Intervals by bootstrap over people.",
    ]
    return rows, notes


def _people(recorded: Readings) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Half of the people to learn from, a part of them to stop learning on and to train policies with; and the rest.
    Whoever has one secret for good is dealt out by it."""
    of_each = [(recorded.secret[recorded.person == person].min(), person) for person in range(len(recorded.people))]
    dealt = [person for _, person in sorted(of_each)]
    known, audited = dealt[::2], dealt[1::2]
    return tuple(known[::2]), tuple(known[1::2]), tuple(audited)


def _audited(title: str, bound: str | None, traces: Traces, random: Traces | None) -> dict[str, Any]:
    print(title, bound, file=sys.stderr, flush=True)
    found = audit_traces(traces, context=Context(random))
    best = found.strongest
    useful = max((attack.useful.balanced for attack in found.attacks), key=lambda estimate: estimate.value)
    sensors = next(each for each in found.observers if each.observer == "sensor choices only")
    bits = max((attack.secret.bits for attack in found.attacks), key=lambda estimate: estimate.value)
    return {
        "policy": title,
        "bound": bound,
        "readings": traces.length.mean(),
        "strongest_on_secret": f"{best.attacker}, {WORDS[best.fitted_on]}",
        **interval("accuracy_secret", best.secret.balanced),
        **interval("accuracy_useful", useful),
        **interval("bits_about_secret", bits),
        **interval("accuracy_secret_from_sensors_alone", sensors.secret.balanced),
    }
