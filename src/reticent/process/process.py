"""What every process has in common: the public state, prices, the bound; `init` and `step`.

Rollouts, agents and evaluations rely on this alone, so they do not know whether readings are drawn from a model or
replayed from recordings, nor whether the belief is exact or learned.
"""

import abc
import math
from typing import Literal, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from reticent.belief.bayes import secret_marginal, useful_marginal
from reticent.belief.information import entropy_bits
from reticent.errors import InputError
from reticent.problem.bound import Bound, ConfidenceBound, InformationBound
from reticent.problem.objective import Objective
from reticent.problem.task import Enforcement
from reticent.types import Allowed, Belief, Flag, Index, Kernels, PRNGKey, Scalar

AnyProcess = TypeVar("AnyProcess", bound="Process")


class PublicState(eqx.Module):
    """All that a policy may see. The hidden pair is not in it, so no policy can leak what it was not told.

    `kernels`, under a guarantee, say what each sensor would send in place of its readings: a public rule.
    """

    belief: Belief
    spent_bits: Scalar
    allowed: Allowed
    kernels: Kernels | None


class State(eqx.Module):
    """The public state, the step count, and the hidden pair; processes may carry more.

    `row`, where readings are replayed, is the moment in the recordings that the next one is of.
    """

    public: eqx.AbstractVar[PublicState]
    step: eqx.AbstractVar[Index]
    secret: eqx.AbstractVar[Index]
    useful: eqx.AbstractVar[Index]
    row: eqx.AbstractVar[Index | None]


class Refusal(eqx.Module):
    """Why a step was not carried out as asked; compiled play stops there, and nothing is sent.

    `forbidden`: the action is not allowed or does not exist. `impossible`: the sensor gave a reading that has
    probability zero under the model, so that no belief could account for it.
    """

    forbidden: Flag
    impossible: Flag
    step: Index
    action: Index
    symbol: Index

    @classmethod
    def none(cls) -> "Refusal":
        """That of a step that was carried out."""
        no, zero = jnp.zeros((), bool), jnp.zeros((), int)
        return cls(no, no, zero, zero, zero)

    def raise_first(self, sensors: int) -> None:
        """An `InputError` for the first refusal among these, if there is any: names step and action."""
        fields = (self.forbidden, self.impossible, self.step, self.action, self.symbol)
        forbidden, impossible, step, action, symbol = (np.ravel(np.asarray(field)) for field in fields)
        for i in np.flatnonzero(forbidden | impossible)[:1]:
            if impossible[i]:
                raise InputError(
                    f"Step {step[i]}: sensor {action[i]} gave reading {symbol[i]}, which has probability zero under "
                    "the model and the belief so far. The model does not fit this sensor: fit it again."
                )
            if not 0 <= action[i] <= sensors:
                raise InputError(
                    f"Step {step[i]}: the policy chose action {action[i]}, which is out of range 0-{sensors} "
                    f"({sensors} = stop)."
                )
            raise InputError(
                f"Step {step[i]}: the policy chose sensor {action[i]}, which is not allowed there. Choose among the "
                "actions that public.allowed marks True."
            )


class Transition(eqx.Module):
    """What one action did. `violated`: the new state is over the bound. `symbol` is -1 if nothing was sent."""

    state: State
    cost: Scalar
    symbol: Index
    violated: Flag
    terminated: Flag
    truncated: Flag
    refusal: Refusal


class Process(eqx.Module):
    """Prices and bound of a process. Its numbers are array leaves: other bounds and prices do not recompile."""

    prior: Belief
    time_cost: Scalar
    error_penalty: Scalar
    violation_cost: Scalar
    limit: Scalar
    # Price of a bit about the secret at the stop; zero but under "multiplier".
    multiplier: Scalar
    horizon: Index
    bound: Literal["confidence", "information", "expected"] = eqx.field(static=True)
    enforce: Enforcement = eqx.field(static=True)
    inadmissible: bool = eqx.field(static=True)

    def __init__(self, prior: Belief, bound: Bound, objective: Objective, enforce: Enforcement, horizon: int) -> None:
        self.prior = jnp.asarray(prior)
        self.time_cost = jnp.asarray(float(objective.time_cost))
        self.error_penalty = jnp.asarray(float(objective.error_penalty))
        self.violation_cost = jnp.asarray(float(objective.violation_cost))
        self.inadmissible = math.isinf(objective.violation_cost)
        self.horizon = jnp.asarray(horizon)
        if isinstance(bound, ConfidenceBound):
            self.bound, self.limit = "confidence", jnp.asarray(float(bound.limit))
        else:
            self.bound = "information" if isinstance(bound, InformationBound) else "expected"
            self.limit = jnp.asarray(float(bound.limit_bits))
        self.multiplier = jnp.zeros(())
        self.enforce = enforce

    @property
    @abc.abstractmethod
    def sensors(self) -> int:
        """Number of sensors; also the index of the action stop."""

    @abc.abstractmethod
    def init(self, key: PRNGKey) -> State:
        """A fresh episode: the hidden pair is drawn from the prior, the public belief is the prior."""

    def step(self, key: PRNGKey, state, action: Index) -> Transition:
        """Release one reading of the chosen sensor, or stop.

        What is not allowed is refused, whatever the policy: as an `InputError` where the action is known, as the stop
        within compiled code, where `Transition.refusal` tells (`simulate` raises it).
        """
        action, stop = jnp.asarray(action, int), self.sensors
        exists = (action >= 0) & (action <= stop)
        allowed = exists & state.public.allowed[jnp.clip(action, 0, stop)]
        transition = self._carry_out(key, state, jnp.where(allowed, action, stop))
        refusal = eqx.tree_at(lambda r: (r.forbidden, r.action), transition.refusal, (~allowed, action))
        if not isinstance(refusal.forbidden | refusal.impossible, Tracer):
            refusal.raise_first(stop)
        return eqx.tree_at(lambda t: t.refusal, transition, refusal)

    @abc.abstractmethod
    def _carry_out(self, key: PRNGKey, state, action: Index) -> Transition:
        """Release one reading of the chosen sensor, or stop; the action is allowed."""

    def with_multiplier(self: AnyProcess, multiplier: Scalar) -> AnyProcess:
        """The process in which a bit about the secret has this price at the stop."""
        assert self.enforce == "multiplier"
        return eqx.tree_at(lambda p: p.multiplier, self, multiplier)

    def stop_cost(self, belief: Belief) -> Scalar:
        """lambda (1 - max_u beta(u)): the price of declaring now; under "multiplier", of what was said as well."""
        plain = self.error_penalty * (1 - jnp.max(useful_marginal(belief)))
        return plain + self.leakage_cost(belief) if self.enforce == "multiplier" else plain

    def leakage_cost(self, belief: Belief) -> Scalar:
        """mu (H_0 - H(beta_S)), with H_0 the prior's: below zero where the secret is less sure than at first."""
        return self.multiplier * self.said_bits(belief)

    def said_bits(self, belief: Belief) -> Scalar:
        """H_0 - H(beta_S): what was said about the secret by now, on average over all that leads to such beliefs."""
        return entropy_bits(secret_marginal(self.prior)) - entropy_bits(secret_marginal(belief))

    def forbidden(self, belief: Belief) -> Flag:
        """Whether the belief lies in F: max_s beta(s) >= L_B."""
        if self.bound == "confidence":
            return jnp.max(secret_marginal(belief)) >= self.limit
        return jnp.zeros((), bool)

    def used(self, belief: Belief, spent_bits: Scalar) -> Scalar:
        """Share of the bound that is used up. On average over episodes it is what was said by their end that counts."""
        if self.bound == "information":
            return spent_bits / self.limit
        return (jnp.max(secret_marginal(belief)) if self.bound == "confidence" else self.said_bits(belief)) / self.limit

    def release_cost(self, before: Belief, violated: Flag) -> Scalar:
        """C_T, and what crossing the bound costs."""
        if self.enforce == "paper" and self.bound == "confidence":
            return jnp.where(self.forbidden(before), self.violation_cost, self.time_cost)
        return self.time_cost + jnp.where(violated, self.violation_cost, 0.0)
