"""The attacker who sees what followed what, and when."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from reticent.audit.classifiers import Logistic
from reticent.audit.measures import balanced_accuracy
from reticent.audit.naive_bayes import NaiveBayes
from reticent.audit.ngrams import NGrams
from reticent.audit.observers import Clock, End
from reticent.audit.trace_rows import traces_of
from reticent.audit.traces import PADDING, Names, Traces, joined

# Of 1,000 judged episodes, four standard errors of a rate are at most .064.
COUNT, FOUR_STANDARD_ERRORS = 2000, 0.064


def episodes(sensor, symbol=None, reading=None, **columns):
    names = Names(("a", "b", "c"), () if symbol is None else tuple("0123"), ("0", "1"), ("0", "1"))
    count = len(sensor)
    secret = columns.pop("secret")
    return Traces(sensor, symbol, reading, np.ones(count, bool), np.arange(count), secret, secret, names, **columns)


def accuracy(attacker, traces):
    attacker.fit(traces.take(slice(None, None, 2)))
    judged = traces.take(slice(1, None, 2))
    return balanced_accuracy(attacker.posterior(judged).fair_guess("secret"), judged.secret)


def test_the_order_of_sensors_is_seen_wherever_it_is():
    rng = np.random.default_rng(0)
    secret, start = rng.integers(2, size=COUNT), rng.integers(3, size=COUNT)
    # Forwards or backwards, from anywhere; an even mix of sensors, and symbols that say nothing.
    sensor = (start[:, None] + np.arange(6)[None] * np.where(secret, 1, -1)[:, None]) % 3
    traces = episodes(sensor, rng.integers(4, size=(COUNT, 6)), secret=secret)
    assert accuracy(NGrams(), traces) == pytest.approx(1.0, abs=0.02)
    for blind in (NaiveBayes(), Logistic()):
        assert accuracy(blind, traces) == pytest.approx(0.5, abs=FOUR_STANDARD_ERRORS)


@pytest.mark.parametrize("of_readings", [False, True], ids=["symbols", "readings"])
def test_pairs_of_sensor_and_symbol_are_seen_in_order(of_readings):
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=COUNT)
    # The second release agrees with the first in its parity, or does not: neither says anything by itself.
    first = rng.integers(4, size=COUNT)
    second = 2 * rng.integers(2, size=COUNT) + (first + secret) % 2
    symbol, sensor = np.stack([first, second], axis=1), rng.integers(3, size=(COUNT, 2))
    reading = (symbol[:, :, None] + 0.1 * rng.random((COUNT, 2, 1))).astype(np.float32)
    told = {"reading": reading} if of_readings else {"symbol": symbol}
    assert accuracy(NGrams(), episodes(sensor, **told, secret=secret)) > 0.9
    assert accuracy(NaiveBayes(), episodes(sensor, **told, secret=secret)) == pytest.approx(
        0.5, abs=FOUR_STANDARD_ERRORS
    )


def rows(step, secret, **columns):
    count, steps = step.shape
    flat = {"episode": np.repeat(np.arange(count), steps), "step": step.reshape(-1), "sensor": ["x"] * count * steps}
    flat |= {"symbol": ["0"] * count * steps, "secret": np.repeat(secret, steps), "useful": np.repeat(secret, steps)}
    return pl.DataFrame({**flat, **columns}).sort("episode", "step")


def test_steps_in_a_row_are_no_waits():
    step = np.tile(np.arange(3), (10, 1))
    assert traces_of(rows(step, np.arange(10) % 2), "symbol", None).waits is None
    # Nor does a clock that goes evenly say anything, whenever it was started.
    even = pl.Series((step + 1000 * np.arange(10)[:, None]).reshape(-1) * 0.1)
    assert traces_of(rows(step, np.arange(10) % 2, time=even), "symbol", None).waits is None


def test_gaps_in_steps_and_times_by_hand():
    step = np.array([[0, 1, 2], [0, 2, 3], [1, 2, 3]])
    time = pl.Series([0.0, 10, 20, 5, 15, 45, 0, 10, 20])
    table = rows(step, np.array([0, 1, 0]), time=time).with_columns(
        sensor=pl.when(step=3).then(pl.lit("stop")).otherwise("sensor"),
        symbol=pl.when(step=3).then(None).otherwise("symbol"),
    )
    found = traces_of(table, "symbol", None)
    assert found.names.clocks == ("step", "time")
    assert found.waits is not None
    # In units of what is usual, one step and ten seconds. The first waits since the earliest first, the stop too.
    assert found.waits[:, :, 0].tolist() == [[0, 1, 1, 0], [0, 2, 1, 0], [1, 1, 1, 0]]
    assert found.waits[:, :, 1].tolist() == [[0, 1, 1, 0], [0.5, 1, 3, 0], [0, 1, 1, 0]]
    assert found.length.tolist() == [3, 2, 2]
    # After two steps, the second episode has sent twice and not stopped yet.
    assert found.until(2).waits[1, :, 0].tolist() == [0, 2, 0, 0]  # type: ignore[index]
    assert found.padded(5).waits[1, :, 0].tolist() == [0, 2, 1, 0, 0, 0]  # type: ignore[index]
    assert found.padded(2).waits.shape == (3, 3, 2)  # type: ignore[union-attr]
    assert joined(found, found).waits.shape == (6, 4, 2)  # type: ignore[union-attr]


@pytest.mark.parametrize("clock", ["step", "time"])
def test_who_waits_is_found_out(clock):
    rng = np.random.default_rng(0)
    secret = rng.integers(2, size=COUNT)
    # Pauses of two in place of one, more often under one secret: the mean of five tells 77 % apart.
    moment = np.cumsum(1 + (rng.random((COUNT, 5)) < np.where(secret, 0.6, 0.3)[:, None]), axis=1)
    even = np.tile(np.arange(5), (COUNT, 1))
    more = {} if clock == "step" else {"time": pl.Series(moment.reshape(-1) * 60.0)}
    traces = traces_of(rows(moment if clock == "step" else even, secret, **more), "symbol", None)
    assert traces.names.clocks == (clock,)
    for seen in (traces, Clock().sees(traces)):
        assert accuracy(NGrams(), seen) == pytest.approx(0.76, abs=FOUR_STANDARD_ERRORS)
    # How many there were says nothing, and everybody sent as many.
    assert accuracy(NGrams(), End().sees(traces)) == pytest.approx(0.5, abs=FOUR_STANDARD_ERRORS)


def test_n_grams_that_were_never_met_say_nothing():
    secret = np.arange(100) % 2
    traces = episodes(np.zeros((100, 2), int), np.zeros((100, 2), int), secret=secret)
    attacker = NGrams()
    attacker.fit(traces)
    others = replace(traces, sensor=np.full((100, 2), 2))
    assert np.allclose(attacker.posterior(others).secret, 0.5, atol=0.1)
    silent = replace(traces, sensor=np.full((100, 2), PADDING), symbol=np.full((100, 2), PADDING))
    assert np.isfinite(attacker.posterior(silent).secret).all()
