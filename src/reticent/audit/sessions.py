"""Repeated sessions of the same people: the secret stays, the useful value is drawn anew in each.

The adversary is exact Bayes over all sessions. Given the secret they are independent, so that with beta_k what
session k says on its own, from the prior on,

    P(s | all sessions)  is proportional to  p(s) prod_k beta_k(s) / p(s).

Where every session is forgotten, that may cross a bound which no session crosses. Where the belief and the information
spent are carried into the next session, the process keeps its bound over all of them.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from reticent.belief.bayes import normalise, secret_marginal
from reticent.errors import InputError
from reticent.evaluate.estimate import Estimate, mean, rate
from reticent.evaluate.evaluation import check_episodes
from reticent.policy.policy import Policy
from reticent.process.process import Process, PublicState, Refusal, State, Transition
from reticent.process.rollout import Act, decide, in_threads
from reticent.process.source import FromModel
from reticent.types import Array, Belief, Flag, Index, PRNGKey, Scalar

PEOPLE_PER_PIECE = 256


@dataclass(frozen=True)
class AfterSessions:
    """What the adversary knows of people after so many sessions.

    `confidence` is the mean of its max_s P(s) at the end of the last session, `highest_confidence` the largest of any
    person at any moment so far. `accuracy_useful` is of the last session's useful value. `spent_bits` is the
    information spent in all sessions; where sessions are forgotten it is the sum of what each says on its own, on
    average at least what they say together. `violation_rate` counts people over the bound at any moment so far: in the
    adversary's confidence, or in the information spent. A bound on average has none.
    """

    sessions: int
    confidence: Estimate
    accuracy_secret: Estimate
    accuracy_useful: Estimate
    violation_rate: Estimate | None
    spent_bits: Estimate
    highest_confidence: float


def repeated_sessions(
    process: Process,
    policy: Policy,
    carried: bool,
    sessions: int = 10,
    episodes: int = 20_000,
    seed: int = 0,
) -> list[AfterSessions]:
    """What is known after 1, 2, ... sessions of as many people as `episodes`. Deterministic given the seed.

    `carried`: a session starts from the belief in the secret and the information spent where the one before
    ended. Else all start from the prior.
    """
    check_episodes(episodes)
    if not isinstance(process.source, FromModel):
        raise InputError(
            "Repeated sessions need readings that are drawn from the process's own model: only then is the adversary "
            "exact, and only then can the same person come back."
        )
    keys = jax.random.split(jax.random.key(seed), -(-episodes // PEOPLE_PER_PIECE))
    way = jnp.asarray(carried)
    pieces = in_threads(lambda key: jax.device_get(_piece(process, policy.act, way, sessions, key)), keys)
    ends: SessionEnd = jax.tree.map(lambda *parts: np.concatenate(parts)[:episodes], *pieces)
    ends.refusal.raise_first(process.sensors)
    return [_summary(process, k + 1, jax.tree.map(lambda x, k=k: x[:, k], ends)) for k in range(sessions)]


class SessionEnd(eqx.Module):
    """The end of a session: the adversary's belief, its highest confidence so far, the information spent, the truth."""

    belief: Belief
    highest_confidence: Scalar
    spent_bits: Scalar
    secret: Index
    useful: Index
    refusal: Refusal


class Forgotten(eqx.Module):
    """What earlier sessions said and the public state does not know: nothing, if it is carried over.

    `odds` is P(s | earlier sessions) / p(s), up to a factor.
    """

    odds: Float[Array, " S"]
    spent_bits: Scalar


class Person(eqx.Module):
    """Sessions one after the other: the current one, and the ends of those that are done."""

    state: State
    forgotten: Forgotten
    highest_confidence: Scalar
    ends: SessionEnd
    finished: Index
    key: PRNGKey


@eqx.filter_jit
def _piece(process: Process, act: Act, carried: Flag, sessions: int, key: PRNGKey) -> SessionEnd:
    """The ends of all sessions of some people, [N, sessions]."""

    def one(key: PRNGKey) -> SessionEnd:
        # One flat loop over steps, as in rollouts: people wait for the longest of them, not for the longest session.
        more = lambda person: person.finished < sessions  # noqa: E731
        advance = lambda person: _advance(process, act, carried, person)  # noqa: E731
        return jax.lax.while_loop(more, advance, _meet(process, sessions, key)).ends

    return jax.vmap(one)(jax.random.split(key, PEOPLE_PER_PIECE))


def _meet(process: Process, sessions: int, key: PRNGKey) -> Person:
    """A person at the start of the first session."""
    init_key, key = jax.random.split(key)
    state = process.init(init_key)
    forgotten = Forgotten(jnp.ones(process.prior.shape[0]), jnp.zeros(()))
    highest = jnp.max(secret_marginal(process.prior))
    end = SessionEnd(process.prior, highest, jnp.zeros(()), state.secret, state.useful, Refusal.none())
    ends = jax.tree.map(lambda value: jnp.zeros((sessions, *value.shape), value.dtype), end)
    return Person(state, forgotten, highest, ends, jnp.zeros((), int), key)


def _advance(process: Process, act: Act, carried: Flag, person: Person) -> Person:
    """One step of the current session and, if it is the last one, on to the next."""
    key, act_key, step_key, useful_key = jax.random.split(person.key, 4)
    public = person.state.public
    # Where crossing ends an episode, one that starts beyond the bound says nothing.
    silent = process.crossed_by_any(public.belief, public.spent_bits, public.panel) & process.ends_on_crossing
    action = jnp.where(silent, process.sensors, decide(act, act_key, public))
    transition = process.step(step_key, person.state, action)
    end = _known(person, transition)
    ends = jax.tree.map(lambda all_, one: all_.at[person.finished].set(one), person.ends, end)
    done = transition.terminated | transition.truncated

    reached = transition.state.public
    belief, spent, forgotten = _next_start(process, carried, person.forgotten, end)
    belief, spent = jnp.where(done, belief, reached.belief), jnp.where(done, spent, reached.spent_bits)
    # Kernels are costly. They are solved here for either case, and those of the transition, which nothing uses, are
    # left out by the compiler.
    public = process.public(belief, spent, _panel_next(process, carried, reached, done))
    fresh = process.resume(useful_key, public, person.state.secret), forgotten
    same = eqx.tree_at(lambda s: (s.public, s.memory), transition.state, (public, public.belief)), person.forgotten
    state, forgotten = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, same)
    return Person(state, forgotten, end.highest_confidence, ends, person.finished + done, key)


def _known(person: Person, transition: Transition) -> SessionEnd:
    """What the adversary knows if the session ends here."""
    state = transition.state
    belief = normalise(state.public.belief * person.forgotten.odds[:, None])
    highest = jnp.maximum(person.highest_confidence, jnp.max(secret_marginal(belief)))
    spent = person.forgotten.spent_bits + state.public.spent_bits
    return SessionEnd(belief, highest, spent, state.secret, state.useful, transition.refusal)


def _next_start(
    process: Process, carried: Flag, forgotten: Forgotten, end: SessionEnd
) -> tuple[Belief, Scalar, Forgotten]:
    """The belief and the information spent that the next session starts from, and what they leave out."""
    prior = secret_marginal(process.prior)
    # A secret that never occurs stays at probability zero.
    odds = secret_marginal(end.belief) / jnp.where(prior > 0, prior, 1.0)
    # beta(s) p(u | s) = p(s, u) beta(s) / p(s)
    carry = normalise(process.prior * odds[:, None]), end.spent_bits, forgotten
    forget = process.prior, jnp.zeros(()), Forgotten(odds, end.spent_bits)
    return jax.tree.map(lambda yes, no: jnp.where(carried, yes, no), carry, forget)


def _panel_next(process: Process, carried: Flag, reached: PublicState, done: Flag) -> Float[Array, "P S U"] | None:
    """What the panel's providers believe next: as the model's does."""
    if process.panel is None or reached.panel is None:
        return None
    prior = process.panel.prior
    marginal = secret_marginal(prior)
    odds = secret_marginal(reached.panel) / jnp.where(marginal > 0, marginal, 1.0)
    carry = jax.vmap(normalise)(prior * odds[:, :, None])
    return jnp.where(done, jnp.where(carried, carry, prior), reached.panel)


def _summary(process: Process, sessions: int, ends: SessionEnd) -> AfterSessions:
    by_secret, by_useful = ends.belief.sum(2), ends.belief.sum(1)
    posterior = process.bound.posterior_limit(by_secret.shape[1])
    limit = process.bound.number if process.bound.on_spending else posterior
    used = ends.spent_bits if process.bound.on_spending else ends.highest_confidence
    return AfterSessions(
        sessions=sessions,
        confidence=mean(by_secret.max(1)),
        accuracy_secret=rate(by_secret.argmax(1) == ends.secret),
        accuracy_useful=rate(by_useful.argmax(1) == ends.useful),
        violation_rate=None if limit is None else rate(used >= np.asarray(limit)),
        spent_bits=mean(ends.spent_bits),
        highest_confidence=float(np.max(np.asarray(ends.highest_confidence))),
    )
