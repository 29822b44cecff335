"""The numpy runtime decides at every state that the compiled policy met, and sends what was sent there.

Also a program, without JAX and without run-time checks of shapes: `python -m tests.gateway.following POLICY PLAY`.
"""

import json
import sys
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from reticent.belief.prospect import Joint
from reticent.gateway.decisions import Decision, Standing
from reticent.gateway.emitter import Sent
from reticent.gateway.runtime import Runtime
from reticent.guard.rules import PublicState
from reticent.guard.safety import Safety
from reticent.guard.value_kernels import ValueKernels
from reticent.problem.enforcement import Guard

# Nearer to the bound than this the program has hardly any room left, and its solution moves with every rounding.
NEAR = 1e-3


class Play(NamedTuple):
    """Step after step of many lanes, [lanes steps]: the public state, the action, what was sent, and where it led.

    `kernels` has no entries where there are none.
    """

    belief: np.ndarray
    spent_bits: np.ndarray
    kernels: np.ndarray
    action: np.ndarray
    symbol: np.ndarray
    after: np.ndarray
    spent_after: np.ndarray
    goes_on: np.ndarray


@dataclass
class Tally:
    """How it went: steps, and those near the bound; other choices between two whose scores are within 1e-5 of each
    other, other choices near the bound, and other choices, which are wrong.

    `unsafe`: steps at which one of the kernels, compiled or not, would let a symbol cross the bound.

    `better`: how much more the compiled kernels cost than ours, in the mean over steps and sensors.

    Then the largest differences: of the belief and the ledger after a release by the compiled kernels, everywhere; of
    what the kernels are worth, near the bound and elsewhere; not near the bound also of the kernels themselves, and of
    the scores that the policy gives with the one or the other.
    """

    steps: int = 0
    near: int = 0
    ties: int = 0
    other_near: int = 0
    wrong: int = 0
    unsafe: int = 0
    better: float = 0.0
    belief: float = 0.0
    bits: float = 0.0
    worth: float = 0.0
    worth_near: float = 0.0
    kernels: float = 0.0
    scores: float = 0.0


class Rigged(np.random.Generator):
    """Draws what it is told to."""

    draw = 0.0

    def random(self):  # type: ignore[override]
        return self.draw


RIGGED = Rigged(np.random.PCG64(0))


def limit_of(runtime: Runtime) -> float:
    """L_B."""
    limit = runtime.bound.posterior_limit(len(runtime.task.model.secrets))
    assert limit is not None
    return limit


def follow(runtime: Runtime, play: Play) -> Tally:
    """Compare every step."""
    tally = Tally()
    for row in np.ndindex(play.action.shape):
        standing = Standing(play.belief[row], float(play.spent_bits[row]), 0, 0)
        near = bool(play.kernels.size) and limit_of(runtime) - runtime.confidence(standing) < NEAR
        tally.steps, tally.near = tally.steps + 1, tally.near + near
        public, action = runtime.public(standing), int(play.action[row])
        _compare_choice(runtime, public, action, near, tally)
        if play.kernels.size:
            theirs = public._replace(kernels=play.kernels[row])
            _compare_worth(runtime, public, theirs, near, tally)
            if not near:
                _compare_kernels(runtime, public, theirs, tally)
            public = theirs
        if play.goes_on[row]:
            decision = runtime.decided(public, action)
            sent, after = sending(runtime, standing, decision, int(play.symbol[row]))
            assert sent.symbol == play.symbol[row]
            tally.belief = max(tally.belief, float(np.abs(after.belief - play.after[row]).max()))
            tally.bits = max(tally.bits, abs(after.spent_bits - float(play.spent_after[row])))
    tally.better /= tally.steps
    return tally


def _compare_choice(runtime: Runtime, public: PublicState, action: int, near: bool, tally: Tally) -> None:
    chosen = runtime.policy.act(public, RIGGED)
    if chosen == action:
        return
    scores = runtime.policy.scores(public)
    if abs(scores[chosen] - scores[action]) < 1e-5 * abs(scores[chosen]):
        tally.ties += 1
    elif near:
        tally.other_near += 1
    else:
        tally.wrong += 1


def _compare_worth(runtime: Runtime, ours: PublicState, theirs: PublicState, near: bool, tally: Tally) -> None:
    """Programs have more than one solution of the same worth, so kernels may differ; what they are worth may not."""
    assert ours.kernels is not None
    assert theirs.kernels is not None
    safety = safety_at(runtime, ours.belief)
    tally.unsafe += not (safety.holds(ours.kernels).all() and safety.holds(theirs.kernels).all())
    one, other = (worth(runtime, safety, kernels) for kernels in (ours.kernels, theirs.kernels))
    tally.better += float((other - one).mean())
    apart = float(np.abs(one - other).max())
    if near:
        tally.worth_near = max(tally.worth_near, apart)
    else:
        tally.worth = max(tally.worth, apart)


def safety_at(runtime: Runtime, belief: np.ndarray) -> Safety:
    """What is safe to send at a belief."""
    return Safety.of(Joint(belief, runtime.rules.channel), runtime.bound.secret_limits(len(belief)))


def worth(runtime: Runtime, safety: Safety, kernels: np.ndarray) -> np.ndarray:
    """What the rule minimises, of each sensor: the chance of a wrong guess or of withholding, or the expected cost to
    go as a share of the error penalty."""
    guard = runtime.rules.enforcement
    assert isinstance(guard, Guard)
    if isinstance(guard.rule, ValueKernels):
        joint = safety.readings.belief * np.moveaxis(safety.readings.channel, -1, 1)
        raw = guard.rule._weighted_value(joint)
        return guard.rule._expected(kernels, joint, raw) / guard.rule.error_penalty
    return (guard.label_costs(safety).swapaxes(0, 1) * kernels).sum((1, 2))


def _compare_kernels(runtime: Runtime, ours: PublicState, theirs: PublicState, tally: Tally) -> None:
    assert ours.kernels is not None
    assert theirs.kernels is not None
    tally.kernels = max(tally.kernels, float(np.abs(ours.kernels - theirs.kernels).max()))
    for one, other in zip(*map(runtime.policy.scores, (ours, theirs)), strict=True):
        if one != other:
            tally.scores = max(tally.scores, float(abs(one - other) / abs(one)))


def sending(runtime: Runtime, standing: Standing, decision: Decision, symbol: int) -> tuple[Sent, Standing]:
    """Release with a reading and a draw that send this symbol."""
    kernel, reading = decision.kernel, symbol
    RIGGED.draw = 0.0
    if kernel is not None:
        option = max(symbol - kernel.shape[1] + 1, 0)
        reading = symbol if option == 0 else int(np.argmax(kernel[option]))
        RIGGED.draw = float(kernel[:option, reading].sum() + kernel[option, reading] / 2)
    return runtime.release(standing, decision, reading, RIGGED)


if __name__ == "__main__":
    with np.load(sys.argv[2]) as arrays:
        print(json.dumps(asdict(follow(Runtime.load(sys.argv[1]), Play(**arrays)))))
