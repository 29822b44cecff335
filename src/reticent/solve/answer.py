"""Answer instead of readings: from a private policy to a public rule for when to answer, and what.

One sample of private reading designs the rule, another, which the rule was not made from, must confirm that every
belief the provider can come to hold stays below the bound. If it does not, a more careful rule is tried on fresh
episodes, and at last the one that answers at once without reading, which needs no estimate.
"""

import numpy as np
from jaxtyping import Float, Int

from reticent.policy.answer import Answer, AnswerRule, confidence_limit, private_episodes
from reticent.policy.lookahead import Lookahead
from reticent.problem.task import Task
from reticent.solve.answer_limits import Moments, Reach, moments_of, reach, slopes, upper_limits
from reticent.solve.answer_program import Program, blind_weights, safe_weights

EPISODES = 2**17
PILOT_EPISODES = 2**13
# Reading is cut where all but this share of the pilot's episodes have ended.
LATE = 1e-3
# Answers come at times that each wait for at least this share of episodes: rare times give away more than they save.
LEAST_SHARE = 0.01
# The chance that the promise is wrong because of the sample.
MISTAKE = 1e-3
# How much further than the confirming sample's limits the design stays away from the bound, attempt by attempt.
CAUTION = (1.75, 3.0)


def answer(task: Task, private: Lookahead, seed: int = 0, episodes: int = EPISODES) -> Answer:
    """The cheapest rule found for the private policy, which was made for `private_task(task)`.

    `episodes` are simulated to design the rule and as many to confirm it. Deterministic given the seed.
    """
    limit = confidence_limit(task)
    pilot_seed, design_seed, *seeds = np.random.SeedSequence([seed, 0]).generate_state(2 + len(CAUTION)).tolist()
    pilot = private_episodes(private, task.horizon, PILOT_EPISODES, pilot_seed)
    times = answer_times(np.asarray(pilot.releases))
    last = int(times[-1])
    design = moments_of(private_episodes(private, last, episodes, design_seed), times)
    program = Program(times, design, task.model.prior, limit, task.objective)
    far = reach(episodes, MISTAKE / (len(seeds) * _conditions(program)))
    for caution, fresh in zip(CAUTION, seeds, strict=True):
        weights = safe_weights(program, far.wider(caution))
        check = moments_of(private_episodes(private, last, episodes, fresh), times)
        rule = rule_of(program, weights, check, far)
        if max(rule.highest_confidence, rule.highest_limit) < limit:
            return Answer(task, private, rule)
    return Answer(task, private, rule_of(program, blind_weights(program), design, far))


def answer_times(releases: Int[np.ndarray, " N"]) -> Int[np.ndarray, " K"]:
    """When answers may come: at 0, after each further share of the pilot's episodes has ended, and at the cut."""
    last = int(np.quantile(releases, 1 - LATE, method="higher"))
    times = [0]
    for time in range(1, last):
        ended, left = (releases > times[-1]) & (releases <= time), releases > time
        if min(ended.mean(), left.mean()) >= LEAST_SHARE:
            times.append(time)
    return np.array(times if last == 0 else [*times, last])


def rule_of(program: Program, weights: Float[np.ndarray, "C X"], check: Moments, far: Reach) -> AnswerRule:
    """The rule of these weights, with beliefs and limits from a sample that they do not depend on."""
    prior, times = program.prior, len(program.times)
    slope = weights @ slopes(program.moments, program.limit)
    used = weights.max(1) > 0
    limits = upper_limits(weights, slope, check, prior.sum(1), far)
    limits = np.where(used, limits, prior.sum(1).max())
    joint = np.einsum("cx,xsu->csu", weights, check.law(prior))
    joint = np.where(used[:, None, None], joint, prior)
    beliefs = joint / joint.sum((1, 2), keepdims=True)
    answers = times * program.useful
    shape = times, program.useful
    return AnswerRule(
        times=program.times,
        chances=weights[:answers].T.reshape(*shape, *shape),
        on_answer=beliefs[:answers].reshape(*shape, *prior.shape),
        # After the last time nobody is silent.
        in_silence=np.concatenate([beliefs[answers:], prior[None]]),
        answer_limits=limits[:answers].reshape(shape),
        silence_limits=np.append(limits[answers:], prior.sum(1).max()),
    )


def _conditions(program: Program) -> int:
    """How many statements must hold at once: one per cell and secret."""
    return (len(program.times) * (program.useful + 1) - 1) * len(program.prior)
