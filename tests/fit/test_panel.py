"""Panels from recordings of people who differ in a known way."""

from dataclasses import replace

import numpy as np
import pytest

import reticent as rt
from reticent.fit.codes import counted, counts_of, smoothed
from reticent.fit.model import fit_coded, fit_model
from reticent.fit.panel import REFITS, fit_panel
from reticent.problem.codebook import Codebook
from reticent.problem.synthetic import two_binary_sensors
from tests.fit.test_transition import CHAIN, RECORDED
from tests.streams import places_of, readings_of

MODEL = two_binary_sensors()
# The readings of the last two people say the opposite of the secret.
TURNED = rt.Model(MODEL.prior, MODEL.channel[:, ::-1], MODEL.secrets, MODEL.useful, MODEL.sensors)


def people():
    ours, theirs = (readings_of(model, places_of(MODEL), people=2, length=800, seed=7) for model in (MODEL, TURNED))
    rows = {
        name: np.concatenate([getattr(ours, name), getattr(theirs, name) + shift])
        for name, shift in (("values", 0), ("stream", 8), ("person", 2), ("secret", 0), ("useful", 0))
    }
    return replace(ours, **rows, people=tuple("abcd"))


STREAMS = people()


@pytest.fixture(scope="module")
def model():
    fitted = fit_model(STREAMS, codes=2)
    assert fitted.fitted is not None
    # Counts as they are, so that laws can be compared.
    fitted.fitted["tempering"].update(power=1.0, clip=None, secret_power=None)
    return fitted


def coded(model, streams):
    return Codebook.of(model).codes(streams.values)


def plain_laws(model, panel):
    """What each provider of the panel counted, before tempering, of the reading 1.0."""
    one = Codebook.of(model).codes(np.ones((1, 2, 1)))[0]
    return np.array([[member.channel[sensor, :, :, one[sensor]] for sensor in range(2)] for member in panel])


def test_each_provider_of_people_has_that_persons_laws(model):
    wide = fit_panel(model, STREAMS, coded(model, STREAMS), "people")
    laws = plain_laws(model, wide.panel)
    # 800 readings of each pair: four standard errors are .07, and smoothing draws at most .05 to the mean.
    for person, own in enumerate((MODEL, MODEL, TURNED, TURNED)):
        assert np.allclose(laws[person], own.channel[..., 1], atol=0.12)
    assert (wide.fitted or {})["panel"] == {"kind": "people", "sharpen": 1.0}


def test_clusters_find_who_is_alike(model):
    wide = fit_panel(model, STREAMS, coded(model, STREAMS), "clusters")
    assert len(wide.panel) == 2
    by_person = fit_panel(model, STREAMS, coded(model, STREAMS), "people").panel
    for ours, theirs in ((0, 1), (2, 3)):
        mean = (by_person[ours].channel + by_person[theirs].channel) / 2
        assert min(np.abs(member.channel - mean).max() for member in wide.panel) < 0.03


def test_bootstrap_draws_people_anew(model):
    wide, again = (fit_panel(model, STREAMS, coded(model, STREAMS), "bootstrap", seed=3) for _ in range(2))
    assert len(wide.panel) == REFITS
    assert all(np.array_equal(one.channel, other.channel) for one, other in zip(wide.panel, again.panel, strict=True))
    assert np.ptp([member.channel for member in wide.panel], axis=0).max() > 0.05


def test_a_sharper_provider_is_told_more(model):
    plain, sharp = (
        fit_panel(model, STREAMS, coded(model, STREAMS), "people", sharpen=factor).panel[0] for factor in (1.0, 2.0)
    )
    # What one reading in place of the other says of one pair against another counts twice.
    said = lambda member: np.diff(np.log(member.channel[:, 0, 0] / member.channel[:, 1, 1]))  # noqa: E731
    assert np.allclose(said(sharp), 2 * said(plain), atol=1e-9)


def test_what_somebody_was_never_recorded_with_is_as_of_the_others(model):
    kept = ~((STREAMS.person == 0) & (STREAMS.secret == 1))
    rows = {name: getattr(STREAMS, name)[kept] for name in ("values", "stream", "person", "secret", "useful")}
    fewer = replace(STREAMS, **rows)
    rest = fewer.of([1, 2, 3])
    one = fit_panel(model, fewer, coded(model, fewer), "people").panel[0]
    others = fit_panel(model, rest, coded(model, rest), "people").panel
    # Smoothing draws a law at most .05 of the way to the mean of all pairs.
    assert np.allclose(one.channel[:, 1], np.mean([other.channel[:, 1] for other in others], axis=0), atol=0.05)


def test_a_panel_of_people_who_move_has_their_transitions():
    moving, codes = fit_coded(RECORDED, codes=2)
    wide = fit_panel(moving, RECORDED, codes, "people")
    assert len(wide.panel) == 3
    # 6,000 steps of one person: the rarest pair is left in some 100 of them.
    assert all(np.allclose(member.dynamics, CHAIN, atol=0.06) for member in wide.panel)
    assert not np.array_equal(wide.panel[0].dynamics, wide.panel[1].dynamics)


def test_weights_count_people():
    codes, owned = STREAMS.values[..., 0].astype(int), np.ones((2, 2), bool)
    counts = counts_of(STREAMS, codes, owned)
    assert np.allclose(smoothed(counts, owned), counted(STREAMS, codes, owned))
    alone = smoothed(counts, owned, np.array([0.0, 0.0, 3.0, 0.0]))
    assert np.allclose(alone, counted(STREAMS.of([2]), codes[STREAMS.person == 2], owned))


@pytest.mark.parametrize(
    ("kind", "sharpen", "sentence"), [("all", 1.0, "panel is one of people"), ("people", 0.0, "above 0, but is 0")]
)
def test_other_panels_are_refused(model, kind, sharpen, sentence):
    with pytest.raises(rt.InputError, match=sentence):
        fit_panel(model, STREAMS, coded(model, STREAMS), kind, sharpen)
