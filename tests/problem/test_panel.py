"""A panel: models of other providers, checked when the model is built, written and read back."""

import json

import numpy as np
import pytest

import reticent as rt
from reticent.problem.synthetic import two_binary_sensors
from tests.problems import random_model

MODEL = two_binary_sensors()
OTHER = [[[[0.5, 0.5], [0.2, 0.8]], [[0.4, 0.6], [0.1, 0.9]]]] * 2


def test_what_a_member_does_not_say_is_as_in_the_model():
    model = MODEL.with_panel([{"prior": [[0.1, 0.2], [0.3, 0.4]]}, {"channel": OTHER}])
    first, second = model.panel
    assert np.array_equal(first.channel, model.channel)
    assert np.array_equal(second.prior, model.prior)
    assert np.allclose(second.channel, OTHER)
    assert first.sensors == model.sensors
    assert first.panel == ()


def test_a_file_holds_in_what_members_differ():
    model = MODEL.with_panel([{"prior": [[0.1, 0.2], [0.3, 0.4]]}, rt.Model(**{**_fields(MODEL), "channel": OTHER})])
    written = json.loads(json.dumps(model.to_json()))
    assert [set(each) for each in written["panel"]] == [{"prior"}, {"channel"}]
    read = rt.Model.from_json(written)
    for one, other in zip(model.panel, read.panel, strict=True):
        assert np.array_equal(one.prior, other.prior)
        assert np.array_equal(one.channel, other.channel)
    assert "panel" not in MODEL.to_json()


def test_a_task_keeps_its_panel():
    task = rt.Task(MODEL.with_panel([{"channel": OTHER}]), rt.Confidence(0.8), enforcement=rt.Coarsen())
    assert np.allclose(rt.Task.from_json(task.to_json()).panel[0].channel, OTHER)
    assert task.promised.endswith("for a provider with any of 2 models, and with every mixture of them")
    assert rt.Task(MODEL, rt.Confidence(0.8)).promised.endswith("for a provider who knows this model")


@pytest.mark.parametrize(
    ("panel", "sentence"),
    [
        ("all", "panel is a list of models"),
        ([3], "Model 1 of the panel is an object with prior, channel, transition"),
        ([{}, {"secrets": ["a", "b"]}], "Model 2 of the panel is an object"),
        ([{"prior": [[0.5, 0.5], [0.0, 0.0]]}], r"Model 1 of the panel has probability zero in its prior at \[1, 0\]"),
        ([random_model(0)], "Model 1 of the panel has names of its own"),
        ([MODEL.with_panel([{}])], "or a panel"),
    ],
)
def test_a_panel_that_cannot_be_followed_is_refused(panel, sentence):
    with pytest.raises(rt.InputError, match=sentence):
        MODEL.with_panel(panel)


def test_a_reading_that_a_member_rules_out_is_refused():
    channel = MODEL.channel.copy()
    channel[1, 0, 1] = [1.0, 0.0]
    with pytest.raises(rt.InputError, match=r"in its channel at \[1, 0, 1, 1\]"):
        MODEL.with_panel([{"channel": channel}])


def test_a_member_who_is_over_the_bound_at_first_is_refused():
    model = MODEL.with_panel([{}, {"prior": [[0.45, 0.4], [0.1, 0.05]]}])
    with pytest.raises(rt.InputError, match=r"model 2 of the panel: The confidence bound 0\.8 is not above 0\.85"):
        rt.Task(model, rt.Confidence(0.8), enforcement=rt.Coarsen())


@pytest.mark.parametrize(
    ("bound", "enforcement"),
    [(rt.Confidence(0.8), rt.Penalty()), (rt.Information(0.5), rt.Mask()), (rt.Confidence(0.8), rt.AnswerOnly())],
)
def test_only_a_bound_that_is_never_crossed_is_kept_for_a_panel(bound, enforcement):
    with pytest.raises(rt.InputError, match="is not kept for a panel of providers"):
        rt.Task(MODEL.with_panel([{}]), bound, enforcement=enforcement)


def test_without_a_bound_there_is_nothing_to_keep():
    assert rt.Task(MODEL.with_panel([{}]), rt.Unbounded()).panel == ()


def _fields(model):
    return {axis: getattr(model, axis) for axis in ("prior", "channel", "secrets", "useful", "sensors", "symbols")}
