"""Answer instead of readings: the device reads its sensors privately and sends one best guess of U, some time later.

The provider sees when it is answered, and what. Both follow a public rule, so its belief is P(s, u | time, answer),
and P(s, u | no answer so far) before that: a table, which is estimated once and stored with the rule.
"""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from reticent.belief.information import entropy_bits
from reticent.errors import InputError
from reticent.policy.lookahead import Lookahead
from reticent.problem.bound import Unbounded
from reticent.problem.task import Task
from reticent.process.rollout import Episode, simulate

# Chances are stored as they were computed: their sums are one up to this.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class AnswerRule:
    """The public rule, and what the provider knows by it.

    K `times` at which an answer may come. `chances[i, g, k, a]` is the chance of answering a at times[k] when the
    private reading ended after times[i-1], at times[i] at the latest, with best guess g. No answer comes before the
    reading has ended, but for a blind one at the first time, of the same chance whatever will be read.
    `on_answer[k, a]` is the belief after that answer, `in_silence[k]` that after times[k] without one; the prior
    where that cannot happen. The limits are upper confidence limits of the largest P(s) of each.
    """

    times: Int[np.ndarray, " K"]
    chances: Float[np.ndarray, "K U K U"]
    on_answer: Float[np.ndarray, "K U S U"]
    in_silence: Float[np.ndarray, "K S U"]
    answer_limits: Float[np.ndarray, "K U"]
    silence_limits: Float[np.ndarray, " K"]

    def __post_init__(self) -> None:
        if self.times[0] != 0 or (np.diff(self.times) <= 0).any():
            raise InputError("The times of an answer rule must rise from 0.")
        if (self.chances < 0).any() or (abs(self.chances.sum((2, 3)) - 1) > ROUNDING).any():
            raise InputError("The chances of an answer rule must not be negative, and each row must sum to one.")
        if (abs(self.chances[:, :, 0] - self.chances[-1:, -1:, 0])[1:] > ROUNDING).any() or any(
            self.chances[i, :, 1:i].any() for i in range(len(self.times))
        ):
            raise InputError("The answer rule answers before the reading has ended.")
        for beliefs in (self.on_answer, self.in_silence):
            if (beliefs < 0).any() or (abs(beliefs.sum((-2, -1)) - 1) > ROUNDING).any():
                raise InputError("The beliefs of an answer rule must be probabilities that sum to one.")

    @property
    def last(self) -> int:
        """The time of the last answer; the device reads no further."""
        return int(self.times[-1])

    @property
    def highest_confidence(self) -> float:
        """The largest P(s) that the provider ever holds, as published."""
        return float(max(self.on_answer.sum(3).max(), self.in_silence.sum(2).max()))

    @property
    def highest_limit(self) -> float:
        """The upper confidence limit of the largest P(s) that the provider ever holds."""
        return float(max(self.answer_limits.max(), self.silence_limits.max()))

    def draw(
        self, rng: np.random.Generator, ended: Int[np.ndarray, " N"], guess: Int[np.ndarray, " N"]
    ) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Index of the time of the answer, and the answer, for readings that ended at a time with a best guess."""
        times, useful = self.chances.shape[2:]
        cumulative = self.chances.reshape(times, useful, -1).cumsum(2)[np.searchsorted(self.times, ended), guess]
        drawn = (cumulative <= rng.random((len(ended), 1)) * cumulative[:, -1:]).sum(1)
        return np.divmod(drawn, useful)


class Answer:
    """A private policy and the public rule that turns its best guess into an answer."""

    def __init__(self, task: Task, private: Lookahead, rule: AnswerRule) -> None:
        self.task, self.private, self.rule, self.limit = task, private, rule, confidence_limit(task)
        if not max(rule.highest_confidence, rule.highest_limit) < self.limit:
            raise InputError(
                f"The answer rule lets the provider's confidence come up to {rule.highest_limit:.6g}, "
                f"which is not below the bound {self.limit:g}."
            )

    def play(self, count: int, seed: int) -> tuple[Episode, Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Episodes of private reading, and of each the index of the time of its answer, and the answer."""
        private = private_episodes(self.private, self.rule.last, count, seed)
        ended, guess = np.asarray(private.releases), best_guess(private)
        return private, *self.rule.draw(np.random.default_rng([seed, 1]), ended, guess)

    def simulate(self, count: int, seed: int) -> Episode:
        """Records of independent episodes as the provider sees them. Deterministic given the seed.

        `releases` is the time of the answer, `belief` the provider's then as published. `spent_bits` is H(S) before
        less H(S) after: on average, the information of time and answer about S. `truncated` are the episodes whose
        private reading was cut.
        """
        rule, price = self.rule, self.task.objective
        private, time, answer = self.play(count, seed)
        belief = rule.on_answer[time, answer]
        confidence = belief.sum(2).max(1)
        # What silence said at each time before the answer; before anything, it is the prior.
        silence = [self.task.model.largest_secret_prior, *rule.in_silence[:-1].sum(2).max(1)]
        before = np.maximum.accumulate(silence)[time]
        bits = entropy_bits(rule.on_answer.sum(3))
        prior_bits = float(entropy_bits(self.task.model.prior.sum(1)))
        highest = np.maximum(confidence, before)
        seen = {
            "cost": price.error_penalty * (1 - belief.sum(1).max(1)) + price.time_cost * rule.times[time],
            "violation_cost": np.zeros(count),
            "releases": rule.times[time],
            "spent_bits": prior_bits - bits[time, answer],
            "highest_confidence": highest,
            "violated": highest >= self.limit,
            "belief": belief,
        }
        return eqx.tree_at(lambda episode: [getattr(episode, name) for name in seen], private, list(seen.values()))


def confidence_limit(task: Task) -> float:
    """The limit on the posterior of every secret that answers keep: the least one."""
    return float(np.min(task.bound.secret_limits(len(task.model.secrets))))


def private_task(task: Task) -> Task:
    """What the device solves in private: the same problem without a bound."""
    return Task(task.model, Unbounded(), task.objective, horizon=task.horizon)


def private_episodes(private: Lookahead, last: int, count: int, seed: int) -> Episode:
    """Episodes of private reading, which ends after `last` readings at the latest."""
    process = eqx.tree_at(lambda process: process.horizon, private.process, jnp.asarray(last))
    return simulate(process, private.act, count, seed)


def best_guess(private: Episode) -> Int[np.ndarray, " N"]:
    """The device's best guess of U where its reading ended."""
    return np.asarray(private.belief).sum(1).argmax(1)
