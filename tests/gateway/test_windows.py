"""Raw samples are gathered into the model's windows, and a window that is not whole or not of now is not released."""

import numpy as np

from reticent.gateway.messages import Message
from reticent.problem.bound import Information
from reticent.problem.model import Model
from tests.gateway.parts import Place, task

# Samples a second.
RATE = 10


def numbers(tmp_path):
    """A fitted model by hand: code 0 is a mean near 0, code 1 a mean near 10; ten samples a second."""
    channel = np.array([0.6, 0.4, 0.4, 0.6]).reshape(1, 2, 1, 2).repeat(2, axis=2)
    codebook = {"mean": [[0.0, 0.0]], "deviation": [[1.0, 1.0]], "centres": [[[0.0, 0.0], [10.0, 0.0]]]}
    reading = {"kind": "window", "seconds": 1.0}
    fitted = {"codebook": codebook, "reading": reading, "features": [2], "interval": 1 / RATE}
    names = ("s0", "s1"), ("u0", "u1"), ("a0",), ("code 0", "code 1")
    model = Model(np.full((2, 2), 0.25), channel, *names, fitted=fitted)
    return Place(tmp_path, task(Information(1.0), "mask", 100, model))


def say(place, seconds, level):
    """Raw samples of some seconds, around a level."""
    sent = []
    for _ in range(round(seconds * RATE)):
        place.clock.now += 1 / RATE
        message = Message("ada", "a0", place.clock.now, sample=(level + 0.1,))
        sent += place.gateway.handle([message])
    return [out.symbol for out in sent]


def test_samples_are_gathered_into_windows(tmp_path):
    place = numbers(tmp_path)
    told = say(place, 1.0, 0.0) + say(place, 1.0, 10.0) + say(place, 1.5, 0.0)
    assert told == ["code 0", "code 1", "code 0"]
    assert place.gateway.counters["gathered"] == 32
    assert place.gateway.counters["released"] == 3
    place.clock.now += 0.6
    assert place.gateway.handle([Message("ada", "a0", place.clock.now, reading=(9.0, 0.0))])[0].symbol == "code 1"
    assert place.gateway.handle([Message("ada", "a0", reading=(9.0, 0.0, 1.0))]) == []
    assert place.gateway.counters["unfit"] == 1
    place.ledger.close()


def test_a_window_from_before_a_silence_is_not_released(tmp_path):
    place = numbers(tmp_path)
    assert say(place, 0.8, 0.0) == []
    place.clock.now += 40
    assert say(place, 0.1, 0.0) == []
    assert place.gateway.counters["stale"] == 1
    assert say(place, 0.4, 0.0) == []
    place.clock.now += 2
    assert say(place, 0.1, 0.0) == ["code 0"]
    place.clock.now += 2
    assert say(place, 0.1, 0.0) == []
    assert place.gateway.counters["windows with too few samples"] == 1
    place.ledger.close()
