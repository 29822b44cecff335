"""Checks that must pass where the true model is known, or where a bound is claimed."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from scipy import stats

from reticent.audit.evidence import Evidence
from reticent.audit.findings import NOTHING_LEARNED, Check, percent, title
from reticent.audit.measures import LEAST_BELIEF, errors_from_zero
from reticent.audit.posterior import Posterior
from reticent.audit.verdict import ENOUGH_PEOPLE, NOT_REFUTED

# A difference of so many standard errors is no chance: one false alarm in some ten thousand.
CLEAR = 4.0


def checks(found: Evidence, model_is_true: bool, claimed: bool) -> Iterator[Check]:
    """All that can be checked. `claimed`: somebody says that no belief reaches the limit."""
    # Of few people nothing clear can be said.
    enough = found.resampler.unit.max() + 1 >= ENOUGH_PEOPLE
    if model_is_true and enough and found.exact is not None:
        yield _honest(found, found.exact)
        yield _nobody_beats(found, found.exact)
    if not claimed or found.limit is None:
        return
    if found.exact is not None:
        yield Check(
            "the bound holds",
            found.highest_exact < found.limit,
            f"The belief of exact Bayes reached {found.highest_exact:.4f} at most; the bound is {found.limit:g}.",
        )
    if enough:
        yield _not_refuted(found, found.limit)


def _not_refuted(found: Evidence, limit: float) -> Check:
    """If no belief reaches L, nobody is right in L of any episodes that can be told by what was released: neither of
    all, nor of those where some attacker was that sure."""
    worst, sentence, truth = -np.inf, "", found.subject.secret
    for one in found.tried:
        right, sure = one.end.secret.argmax(1) == truth, one.end.secret.max(1) >= limit
        for among, which in ((np.ones(len(truth), bool), "all"), (sure, f"those where it believes {limit:g} or more")):
            if not among.any():
                continue
            share = found.resampler.share(right, among, found.level)
            if share.low > worst:
                worst = share.low
                sentence = f"{title(one.attack)} is right in {percent(share)} of {among.sum():,} episodes ({which})"
    if worst >= limit:
        return Check(NOT_REFUTED, False, f"The bound {limit:g} does not hold: {sentence}.")
    return Check(NOT_REFUTED, True, f"The bound {limit:g} is not refuted by accuracy. The nearest: {sentence}.")


def _honest(found: Evidence, exact: Posterior) -> Check:
    """An exact belief is right as often as it says."""
    right, believed = exact.secret.argmax(1) == found.subject.secret, exact.secret.max(1)
    off, clear = errors_from_zero(right - believed, found.resampler.unit, float(stats.norm.sf(CLEAR)))
    return Check(
        "exact Bayes is calibrated",
        abs(off) < clear,
        f"Exact Bayes is right in {right.mean():.2%} of episodes and believes {believed.mean():.2%} on average, "
        f"{abs(off):.1f} standard errors apart.",
        shows_leak=False,
    )


def _nobody_beats(found: Evidence, exact: Posterior) -> Check:
    """Who learns cannot know more than the model explains, unless something else tells the secret: neither name it
    right more often, nor believe more in the truth (in bits, which also shows where one secret is rare)."""
    truth, rows = found.subject.secret, np.arange(len(found.subject))

    def bits(said: Posterior) -> Float[np.ndarray, " N"]:
        return np.log2(np.maximum(said.secret[rows, truth], LEAST_BELIEF))

    worst, lead, caught = "", -np.inf, False
    for one in found.tried:
        attack, end = one.attack, one.end
        if attack.fitted_on == NOTHING_LEARNED:
            continue
        hits = 1.0 * (end.secret.argmax(1) == truth) - (exact.secret.argmax(1) == truth)
        for gain, unit in ((hits, "episodes named right"), (bits(end) - bits(exact), "bits about the secret")):
            errors, clear = errors_from_zero(gain, found.resampler.unit, float(stats.norm.sf(CLEAR)))
            if errors / clear > lead:
                lead, caught = errors / clear, errors >= clear
                worst = f"{title(attack)}, {gain.mean():+.4f} in {unit} per episode, {errors:.1f} standard errors"
    if not caught:
        return Check("no attacker beats exact Bayes", True, f"The nearest: {worst}.")
    return Check(
        "no attacker beats exact Bayes",
        False,
        f"Somebody knows more than exact Bayes can ({worst}): the traces say more than the model and the public rule "
        "explain. Something else depends on the secret, such as which sensor is chosen, or when it stops; or it is not "
        "the model of these traces.",
    )
