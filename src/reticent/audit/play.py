"""Playing a policy to see what it releases."""

import numpy as np

from reticent.audit.trace_files import trace_table
from reticent.audit.trace_rows import traces_of
from reticent.audit.traces import PADDING, Names, Traces, padded_rows
from reticent.data.readings import Readings
from reticent.policy.answer import Answer
from reticent.policy.policy import Policy
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.rollout import Episode, Sent, simulate_traced


def play(
    task: Task, process: Process, policy: Policy, episodes: int, seed: int, recorded: Readings | None = None
) -> tuple[Episode, Traces]:
    """Episodes of a finite model, and what was sent. `recorded` says whose they are where recordings are replayed."""
    records, sent = simulate_traced(process, policy.act, episodes, seed)
    return records, traces_of(trace_table(task, process, records, sent, recorded), "symbol", task.model)


def play_readings(
    process: Process, policy: Policy, episodes: int, seed: int, recorded: Readings
) -> tuple[Episode, Traces]:
    """Episodes over recordings in which readings are released as they are."""
    records, sent = simulate_traced(process, policy.act, episodes, seed)
    return records, _raw(records, sent, process.sensors, recorded)


def play_answers(answer: Answer, episodes: int, seed: int) -> Traces:
    """What the provider sees of answers: silence at each time until it is answered.

    The likelihoods are quotients of the beliefs that the rule publishes, which they give back.
    """
    private, time, said = answer.play(episodes, seed)
    rule, model = answer.rule, answer.task.model
    waited = np.arange(len(rule.times))[None] < time[:, None]
    answered = np.arange(len(rule.times))[None] == time[:, None]
    silent = len(model.useful)
    symbol = np.where(waited, silent, np.where(answered, said[:, None], PADDING))
    before = np.concatenate([model.prior[None], rule.in_silence[:-1]])
    beliefs = np.concatenate([rule.on_answer, rule.in_silence[:, None]], axis=1)
    possible = before[:, None] > 0
    quotients = np.where(possible, beliefs / np.where(possible, before[:, None], 1.0), 1.0)
    likelihood = np.where(
        (symbol == PADDING)[:, :, None, None], 1.0, quotients[np.arange(len(rule.times))[None], symbol]
    )
    return Traces(
        sensor=np.where(symbol == PADDING, PADDING, 0),
        symbol=symbol,
        reading=None,
        stopped=np.zeros(episodes, bool),
        person=np.arange(episodes),
        secret=np.asarray(private.secret),
        useful=np.asarray(private.useful),
        names=Names(("the device",), (*model.useful, "no answer yet"), model.secrets, model.useful),
        likelihood=likelihood,
    )


def _raw(records: Episode, sent: Sent, sensors: int, recorded: Readings) -> Traces:
    spoke = np.asarray(sent.action) < sensors
    episode, step, sensor, row = (
        np.asarray(x)[spoke].astype(int) for x in (sent.episode, sent.step, sent.action, sent.symbol)
    )
    stopped = np.zeros(len(records.secret), bool)
    stopped[np.asarray(sent.episode)[~spoke]] = True
    shape = len(records.secret), int(step.max(initial=0)) + 1
    return Traces(
        sensor=padded_rows(episode, step, sensor, shape, PADDING),
        symbol=None,
        reading=padded_rows(episode, step, recorded.values[row, sensor].astype(np.float32), shape, 0.0),
        stopped=stopped,
        person=recorded.person[np.asarray(records.row)],
        secret=np.asarray(records.secret),
        useful=np.asarray(records.useful),
        names=Names(recorded.sensors, (), recorded.secrets, recorded.useful_values),
    )
