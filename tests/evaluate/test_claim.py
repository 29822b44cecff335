"""Claims about new people: exact p-values, and how often a wrong claim is made."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reticent as rt
from reticent.evaluate.claim import Claim, Wanted, grid, three_parts


def test_by_hand():
    wanted = Wanted(0.65, level=0.9, share=0.9)
    # .9^22 = .0985, .9^21 = .1094.
    assert wanted.people_needed == 22
    assert wanted.p_value(0, 22) == pytest.approx(0.9**22)
    assert wanted.p_value(1, 22) == pytest.approx(0.9**22 + 22 * 0.1 * 0.9**21)
    assert wanted.accepts(0, 22)
    assert not wanted.accepts(0, 21)
    assert not wanted.accepts(1, 22)
    assert Wanted(0.65, level=0.9, share=0.7).people_needed == 7


def test_too_few_people_are_told_how_many_are_needed():
    with pytest.raises(
        rt.InputError, match=r"at least 22 are needed .* there are 7\. .* 7 people allow a share of 0\.72"
    ):
        Wanted(0.65).check(7)
    Wanted(0.65).check(22)


@pytest.mark.parametrize("number", [0.0, 1.0, 65.0, -0.1])
def test_only_shares_are_claimed(number):
    with pytest.raises(rt.InputError, match="level must lie between 0 and 1"):
        Wanted(0.65, level=number)


@given(people=st.integers(1, 60), share=st.floats(0.5, 0.95), level=st.floats(0.5, 0.99), kept=st.floats(0.0, 1.0))
def test_a_wrong_claim_is_rare_whatever_the_truth(people, share, level, kept):
    """Exactly, over all outcomes: where too few keep to the limit, the chance to claim is at most the size."""
    wanted = Wanted(0.65, level, share)
    truth = kept * share
    law = [comb(people, k) * (1 - truth) ** k * truth ** (people - k) for k in range(people + 1)]
    claimed = sum(chance for k, chance in enumerate(law) if wanted.accepts(k, people))
    assert claimed <= wanted.size + 1e-9


def test_a_sequence_claims_nothing_wrong_more_often_than_one():
    """Three policies of which the two bolder ones break the claim, by all outcomes of six independent people each."""
    wanted, people = Wanted(0.65, level=0.7, share=0.8), 6
    kept = (0.95, 0.8, 0.5)
    wrong = 0.0
    for outcome in itertools.product(range(people + 1), repeat=3):
        chance = np.prod(
            [comb(people, k) * (1 - p) ** k * p ** (people - k) for k, p in zip(outcome, kept, strict=True)]
        )
        accepted = list(itertools.takewhile(lambda k: wanted.accepts(k, people), outcome))
        wrong += chance * (len(accepted) > 1)
    assert wrong <= wanted.size
    assert wrong > 0.1


def test_several_sequences_share_the_size():
    assert Wanted(0.65, 0.9, 0.9, sequences=2).size == pytest.approx(0.05)
    assert Wanted(0.65, 0.9, 0.9, sequences=2).people_needed == 29


def test_bounds_are_tried_from_the_most_cautious_on():
    assert grid(0.5, 0.65, 3) == pytest.approx([0.55, 0.6, 0.65])


def test_a_promise_has_three_parts():
    claim = Claim.of(Wanted(0.65), 0, 22)
    told = three_parts("never crossed; for a provider who knows this model", claim)
    assert told[0] == "By construction: never crossed; for a provider who knows this model."
    assert "of at least 90% of people like these right in at most 65% of the cases (0 of 22 people were over" in told[1]
    assert told[2].startswith("Not at all: for people unlike those recorded")
    assert "nothing was claimed" in three_parts("never crossed", None)[1]
    assert Claim(**claim.to_json()) == claim
