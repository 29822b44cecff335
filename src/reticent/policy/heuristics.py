"""Heuristic policies: one-step lookahead, information gain, EJS, Chernoff, each with a stopping threshold.

Every rule stops once max_u beta(u) reaches its threshold, or when no sensor is allowed.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.optimize import linprog
from scipy.special import rel_entr

from reticent.belief.bayes import useful_joint, useful_marginal
from reticent.belief.information import secret_information_bits, useful_information_bits
from reticent.policy.features import lookahead_costs
from reticent.policy.policy import NEVER, FixedSensor, Policy, RandomSensor, best, choose, sure_enough
from reticent.process.process import Process, Public, PublicState
from reticent.process.rollout import AnyProcess
from reticent.types import Array, Belief, Channel, Index, PerSensor, PRNGKey, Scalar

# Keeps logarithms and quotients finite where a hypothesis is already ruled out.
TINY = 1e-300


class OneStepLookahead(Policy):
    """The sensor whose single release, then a stop, is cheapest; stops when stopping now is cheaper still.

    Args:
        process: The process that it looks ahead in.
        threshold: It also stops once max_u beta(u) reaches this; by default never.

    Example:
        >>> from reticent.problem.synthetic import tells_useful
        >>> process = rt.Process.of(rt.Task(tells_useful(), rt.Confidence(0.8)))
        >>> rt.Solution.of(process.task, rt.OneStepLookahead(process)).evaluate(100).releases.value
        1.0
    """

    process: Process
    threshold: Scalar = eqx.field(default_factory=lambda: jnp.asarray(jnp.inf))

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        del key
        cost = lookahead_costs(self.process, public)
        cheapest = jnp.min(jnp.where(public.allowed[:-1], cost, jnp.inf))
        stop = self.process.stop_cost(public.belief) <= cheapest
        return best(public, -cost, stop | sure_enough(public, self.threshold))


class InformationGain(Policy):
    """The sensor with the highest I_U - kappa I_S, in bits."""

    process: AnyProcess
    kappa: Scalar
    threshold: Scalar

    def act(self, key: PRNGKey, public: Public) -> Index:
        del key
        emissions = self.process.emissions(public)
        gain = useful_information_bits(public.belief, emissions)
        loss = secret_information_bits(public.belief, emissions)
        return best(public, gain - self.kappa * loss, sure_enough(public, self.threshold))


def extrinsic_jensen_shannon(belief: Belief, channel: Channel) -> PerSensor:
    """EJS = sum_u beta(u) D(q_u || sum_{v != u} beta(v) q_v / (1 - beta(u))), in nats (Naghshvar & Javidi 2013)."""
    joint = useful_joint(belief, channel)
    weight = useful_marginal(belief)[:, None, None]
    own = joint / jnp.maximum(weight, TINY)
    rest = (joint.sum(0, keepdims=True) - joint) / jnp.maximum(1 - weight, TINY)
    divergence = own * (jnp.log(jnp.maximum(own, TINY)) - jnp.log(jnp.maximum(rest, TINY)))
    return jnp.sum(weight * divergence, axis=(0, 2))


class ExtrinsicJensenShannon(Policy):
    """The sensor with the highest EJS divergence between the useful values."""

    process: Process
    threshold: Scalar

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        del key
        scores = extrinsic_jensen_shannon(public.belief, self.process.emissions(public))
        return best(public, scores, sure_enough(public, self.threshold))


class Chernoff(Policy):
    """Chernoff's (1959) procedure: act as if the likeliest pair were true.

    The sensor is drawn from the mixture that maximises the smallest divergence from that pair to any pair with
    another useful value.
    """

    mixture: Float[Array, "S U A"]
    threshold: Scalar

    def act(self, key: PRNGKey, public: PublicState) -> Index:
        secret, useful = jnp.unravel_index(jnp.argmax(public.belief), public.belief.shape)
        return choose(key, public, self.mixture[secret, useful], sure_enough(public, self.threshold))


def chernoff_mixture(
    prior: Float[np.ndarray, "S U"], channel: Float[np.ndarray, "A S U Z"]
) -> Float[np.ndarray, "S U A"]:
    """For each pair, the mixture over sensors that maximises the smallest sum_a w_a D(q_asu || q_arv).

    The smallest is over the pairs (r, v) with another useful value that can occur.
    """
    sensors, secrets, useful, _ = channel.shape
    mixture = np.full((secrets, useful, sensors), 1 / sensors)
    for s, u in np.ndindex(secrets, useful):
        rivals = channel[:, (prior > 0) & (np.arange(useful) != u)]
        # An impossible symbol separates for sure; a large finite number keeps the linear program well posed.
        divergence = np.minimum(rel_entr(channel[:, s, u, None, :], rivals).sum(-1), 1e3)
        if rivals.shape[1]:
            mixture[s, u] = _maximin(divergence)
    return mixture


def _maximin(payoff: Float[np.ndarray, "A R"]) -> Float[np.ndarray, " A"]:
    """The mixed strategy of the row player of a zero-sum game, by linear programming (HiGHS)."""
    rows, columns = payoff.shape
    solution = linprog(
        c=np.append(np.zeros(rows), -1.0),
        A_ub=np.hstack([-payoff.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=np.append(np.ones(rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, 1)] * rows + [(None, None)],
    )
    weight = np.clip(solution.x[:-1], 0, None)
    return weight / weight.sum()


ThresholdRule = RandomSensor | FixedSensor | OneStepLookahead | InformationGain | ExtrinsicJensenShannon | Chernoff
BASELINES = ("random sensor", "fixed sensor", "one-step lookahead", "information gain", "EJS", "Chernoff")
KAPPAS = (0.0, 0.5, 1.0)


def threshold_rules(name: str, process: Process) -> dict[str, ThresholdRule]:
    """The variants of a baseline by name; none of them stops by threshold yet."""
    never = jnp.asarray(NEVER)
    match name:
        case "random sensor":
            return {"": RandomSensor(never)}
        case "fixed sensor":
            return {f"number {sensor}": FixedSensor(jnp.asarray(sensor), never) for sensor in range(process.sensors)}
        case "one-step lookahead":
            return {"": OneStepLookahead(process, never)}
        case "information gain":
            return {f"kappa {kappa:g}": InformationGain(process, jnp.asarray(kappa), never) for kappa in KAPPAS}
        case "EJS":
            return {"": ExtrinsicJensenShannon(process, never)}
        case "Chernoff":
            mixture = chernoff_mixture(np.asarray(process.prior), np.asarray(process.channel))
            return {"": Chernoff(jnp.asarray(mixture), never)}
        case _:
            raise ValueError(f"There is no baseline {name!r}.")
