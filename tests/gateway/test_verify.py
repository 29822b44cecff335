"""Whatever is done to a ledger is found, or docs/ledger.md says that it is not."""

import json
import shutil
import sqlite3
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reticent.gateway.entry import COLUMNS, Entry, row_of
from reticent.gateway.ledger import Head
from reticent.gateway.opening import open_ledger
from reticent.gateway.runtime import Runtime
from reticent.gateway.turns import What
from reticent.gateway.verify import Fault, verify
from reticent.guard import safety
from reticent.problem.bound import Confidence, Information
from tests.gateway.parts import task, write_policy
from tests.gateway.places import FilePlace, chain, entry_after, fields_of
from tests.problems import random_model


@pytest.fixture(scope="module")
def runtimes(tmp_path_factory):
    """Policies that nobody trained, for each way to keep a bound."""
    folder = tmp_path_factory.mktemp("policies")
    model = random_model(0, secrets=3, symbols=5)
    tasks = {
        "coarsen": task(Confidence(0.8), "coarsen", model=model),
        "withhold": task(Confidence(0.8), "withhold", model=model),
        "mask": task(Information(2.0), "mask", model=model),
    }
    return {name: Runtime.load(write_policy(folder / f"{name}.safetensors", each)) for name, each in tasks.items()}


@pytest.fixture(scope="module")
def histories(runtimes):
    return {name: played(runtime, "ada") for name, runtime in runtimes.items()}


def played(runtime: Runtime, subject: str, sessions: int = 3, seed: int = 0) -> list[Entry]:
    """What a gateway would write of a subject: releases until the stop, some sessions of them."""
    rng, model = np.random.default_rng(seed), runtime.task.model
    secret = rng.integers(len(model.secrets))
    standing, entries = runtime.first(), []
    for session in range(sessions):
        standing = runtime.next_session(standing) if session else standing
        useful = rng.integers(len(model.useful))
        while (decision := runtime.decide(standing, rng)).sensor is not None:
            law = model.channel[decision.sensor, secret, useful]
            step = standing.step
            sent, standing = runtime.release(standing, decision, int(rng.choice(len(law), p=law)), rng)
            what = What(step, runtime.sensors[decision.sensor], runtime.symbols[sent.symbol], sent.chances)
            entries.append(_entry(runtime, entries, subject, standing, what))
        if standing.step == 0:
            break
        entries.append(_entry(runtime, entries, subject, standing, What(standing.step, "stop")))
    return entries


def _entry(runtime, entries, subject, standing, what):
    return entry_after(
        entries[-1] if entries else None,
        subject,
        session=standing.session,
        step=what.step,
        sensor=what.sensor,
        symbol=what.symbol,
        chances=None if what.chances is None else tuple(what.chances.tolist()),
        **({} if what.symbol is not None else {"measured": entries[-1].measured}),
        belief=tuple(map(tuple, standing.belief.tolist())),
        spent_bits=float(standing.spent_bits),
        policy=runtime.digest,
    )


def rechained(entries: list[Entry], number: int, **changed) -> list[Entry]:
    """One entry changed, and all hashes from there on computed anew: what a forger does who knows how."""
    forged = entries[:number]
    for entry in entries[number:]:
        fields: dict[str, Any] = fields_of(entry) | (changed if entry.number == number else {})
        fields["before"] = forged[-1].hash if forged else ""
        forged.append(Entry(**fields))
    return forged


@pytest.fixture
def written(tmp_path):
    """Writes entries into a fresh ledger each time, and opens it."""
    count = iter(range(100))

    def write(*chains):
        ledger = open_ledger(str(tmp_path / f"{next(count)}.db"))
        assert all(ledger.append([entry for entries in chains for entry in entries]))
        return ledger

    return write


def fault_in(*looked_at, **also) -> Fault:
    """What is found, if anything is."""
    fault = verify(*looked_at, **also).fault
    assert fault is not None
    return fault


@pytest.mark.parametrize("enforce", ["coarsen", "withhold", "mask"])
def test_what_a_gateway_writes_is_whole(runtimes, histories, written, enforce):
    runtime = runtimes[enforce]
    chains = [histories[enforce], played(runtime, "bob", seed=1)]
    verdict = verify(written(*chains), runtime)
    entries = [entry for entries in chains for entry in entries]
    assert verdict.fault is None
    assert (verdict.subjects, verdict.entries) == (2, len(entries))
    assert verdict.highest_confidence == max(entry.confidence for entry in entries)
    assert verdict.most_bits == max(entry.spent_bits for entry in entries)
    assert {entry.session for entry in entries} == {0, 1, 2}


def test_an_empty_ledger_is_whole(written):
    assert verify(written()).entries == 0
    assert verify(written()).fault is None


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    path = tmp_path_factory.mktemp("sealed") / "ledger.db"
    with open_ledger(str(path)) as ledger:
        ledger.append([*chain("ada", 6), *chain("bob", 2)])
    return path


text = st.text(st.characters(codec="utf-8"), max_size=20)
number = st.integers(-(2**62), 2**62)
real = st.floats(allow_nan=False, allow_infinity=False)
VALUES = {
    **dict.fromkeys(("number", "session", "step"), number | real | text),
    **dict.fromkeys(("time", "measured", "spent_bits"), real | number | text),
    "symbol": st.none() | text | st.binary(max_size=5),
}


@settings(max_examples=60)
@given(
    data=st.data(),
    place=st.sampled_from([*(("ada", i) for i in range(6)), ("bob", 0), ("bob", 1)]),
    column=st.sampled_from(COLUMNS),
)
def test_any_edit_of_any_field_of_any_entry_is_found(sealed, data, place, column):
    for left in sealed.parent.glob("edited.db*"):
        left.unlink()
    copy = FilePlace(str(sealed.with_name("edited.db")))
    shutil.copy(sealed, copy.where)
    with sqlite3.connect(copy.where) as connection:
        where = "WHERE subject = ? AND number = ?"
        before = connection.execute(f"SELECT {column} FROM entries {where}", place).fetchone()
        connection.executescript("DROP TRIGGER entries_stay")
        value = data.draw(
            _edited_belief(before[0]) if column == "belief" else VALUES.get(column, text | st.binary(max_size=5))
        )
        try:
            connection.execute(f"UPDATE entries SET {column} = ? {where}", (value, *place))
        except sqlite3.IntegrityError:  # the number of another
            assume(False)
        unchanged = connection.execute(f"SELECT count(*) FROM entries {where} AND {column} IS ?", (*place, before[0]))
        assume(unchanged.fetchone() == (0,))
    connection.close()
    with open_ledger(copy.where, read_only=True) as ledger:
        assert verify(ledger).fault is not None


def _edited_belief(before):
    """Any text; or one digit of one number changed."""
    digits = st.integers(0, len(before) - 1).filter(lambda i: before[i].isdigit())
    edited = st.builds(lambda i, digit: before[:i] + digit + before[i + 1 :], digits, st.sampled_from("0123456789"))
    # To write the same numbers in other words is no edit.
    return (edited | text).filter(lambda value: _meaning(value) != _meaning(before))


def _meaning(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize("gone", [(0,), (1,), (3, 4), (0, 1, 2)])
def test_what_is_removed_in_the_middle_is_found(sealed, tmp_path, gone):
    place = FilePlace(str(tmp_path / "ledger.db"))
    shutil.copy(sealed, place.where)
    for number in gone:
        place.unguarded(f"DELETE FROM entries WHERE subject = 'ada' AND number = {number}")
    with place.open(read_only=True) as ledger:
        fault = fault_in(ledger)
    assert (fault.subject, fault.number) == ("ada", next(i for i in range(6) if i not in gone and i >= gone[0]))
    assert "entries are missing" in fault.sentence


def test_entries_that_changed_places_are_found(sealed, tmp_path):
    place = FilePlace(str(tmp_path / "ledger.db"))
    shutil.copy(sealed, place.where)
    for old, new in ((2, 99), (3, 2), (99, 3)):
        place.unguarded(f"UPDATE entries SET number = {new} WHERE subject = 'ada' AND number = {old}")
    with place.open(read_only=True) as ledger:
        assert fault_in(ledger).number == 2


def test_an_entry_with_its_own_hash_made_right_breaks_the_chain(sealed, tmp_path):
    place = FilePlace(str(tmp_path / "ledger.db"))
    shutil.copy(sealed, place.where)
    with place.open(read_only=True) as ledger:
        forged = replace(list(ledger.entries("ada"))[2], spent_bits=0.0)
    changes = ", ".join(f"{name} = ?" for name in COLUMNS)
    place.unguarded(f"UPDATE entries SET {changes} WHERE subject = 'ada' AND number = 2", row_of(forged))
    with place.open(read_only=True) as ledger:
        fault = fault_in(ledger)
    assert fault.number == 3
    assert "the chain is broken" in fault.sentence


@pytest.mark.parametrize(
    ("number", "changed", "sentence"),
    [
        (2, {"time": 0.0}, "is older than the entry before it"),
        (2, {"measured": 1.7e9 + 1.0}, "not newer than the one before it"),
        (4, {"measured": 1.7e9 + 17.0}, "not newer than the one before it"),
        (2, {"step": 3}, "is step 3 of session 0, which cannot follow"),
        (2, {"session": 1}, "is step 2 of session 1"),
        (2, {"session": 1, "step": 0}, None),
        (2, {"session": 2, "step": 0}, "is step 0 of session 2"),
        (0, {"session": 1}, "is step 0 of session 1"),
        (5, {"session": 0, "step": 5}, "is step 5 of session 0"),
    ],
)
def test_what_cannot_follow_is_found(written, number, changed, sentence):
    entries = rechained(chain("ada", 6)[: number + 1], number, **changed)
    if sentence is None:
        assert verify(written(entries)).fault is None
        return
    fault = fault_in(written(entries))
    assert (fault.subject, fault.number) == ("ada", number)
    assert fault.sentence.startswith(f"Entry {number} of subject 'ada'")
    assert sentence in fault.sentence


def test_the_end_and_whole_subjects_are_missed_only_with_a_witness(written):
    """A chain says nothing of what came after its end: an export kept elsewhere does."""
    ada, bob = chain("ada", 6), chain("bob", 2)
    heads = {entries[0].subject: Head(entries[-1].number, entries[-1].hash) for entries in (ada, bob)}
    whole, cut, alone = written(ada, bob), written(ada[:4], bob), written(ada)
    grown = written([*ada, entry_after(ada[-1])], bob, chain("eve", 1))
    assert all(verify(ledger).fault is None for ledger in (whole, cut, alone, grown))
    assert verify(whole, heads=heads).fault is None
    assert verify(grown, heads=heads).fault is None
    fault = fault_in(cut, heads=heads)
    assert (fault.subject, fault.number) == ("ada", 4)
    assert "the export goes on to entry 5" in fault.sentence
    fault = fault_in(alone, heads=heads)
    assert (fault.subject, fault.number) == ("bob", 0)


def test_a_history_that_was_rewritten_whole_is_found_with_a_witness(written):
    ada = chain("ada", 6)
    forged = written(rechained(ada, 2, spent_bits=0.0))
    assert verify(forged).fault is None
    fault = fault_in(forged, heads={"ada": Head(4, ada[4].hash)})
    assert fault.number == 4
    assert "the ledger was rewritten" in fault.sentence


@pytest.mark.parametrize(
    ("number", "changed", "sentence"),
    [
        (
            1,
            lambda e: {"belief": tuple(tuple(reversed(row)) for row in e.belief)},
            "does not follow from what was sent",
        ),
        (1, lambda e: {"belief": e.belief[:1]}, "does not follow from what was sent"),
        (1, lambda e: {"belief": ((e.belief[0][0] + 2e-9, *e.belief[0][1:]), *e.belief[1:])}, "does not follow"),
        (1, lambda e: {"chances": None}, "does not hold the rule"),
        (1, lambda e: {"chances": e.chances[:-1]}, "does not hold the rule"),
        (1, lambda e: {"chances": tuple(2 * chance for chance in e.chances)}, "not between 0 and 1"),
        (1, lambda e: {"chances": tuple(-chance for chance in e.chances)}, "not between 0 and 1"),
        (-1, lambda e: {"chances": (1.0,) * 5}, "is a stop, but holds a rule"),
        (2, lambda e: {"spent_bits": 0.0}, "bits were spent, but"),
        (2, lambda e: {"spent_bits": e.spent_bits + 1.7}, "bits were spent, but"),
        (2, lambda e: {"sensor": "camera"}, "has the sensor 'camera', which"),
        (2, lambda e: {"symbol": "camera"}, "has the symbol 'camera', which"),
        (2, lambda e: {"policy": "00"}, "was made under another policy, with digest 00"),
        (-1, lambda e: {"spent_bits": e.spent_bits + 0.01}, "bits were spent, but"),
    ],
)
def test_a_history_that_was_rewritten_whole_is_found_with_the_policy(
    runtimes, histories, written, number, changed, sentence
):
    runtime, ada = runtimes["coarsen"], histories["coarsen"]
    number %= len(ada)
    forged = written(rechained(ada, number, **changed(ada[number])))
    assert verify(forged).fault is None
    fault = fault_in(forged, runtime)
    assert (fault.subject, fault.number) == ("ada", number)
    assert sentence in fault.sentence


def test_bits_are_exact_where_readings_are_sent_as_they_are(runtimes, histories, written):
    runtime, ada = runtimes["mask"], histories["mask"]
    fault = fault_in(written(rechained(ada, 1, spent_bits=ada[1].spent_bits + 2e-9)), runtime)
    assert "bits were spent, but" in fault.sentence
    fault = fault_in(written(rechained(ada, 1, chances=(0.0, 1.0, 0.0, 0.0, 0.0))), runtime)
    assert "does not hold the rule" in fault.sentence


def test_edited_chances_are_found(runtimes, histories, written):
    """Of a merged symbol the belief follows from them; a reading that was sent as it is stands for itself."""
    runtime, ada = runtimes["coarsen"], histories["coarsen"]
    plain = set(runtime.task.model.symbols)
    merged = next(e for e in ada if e.symbol is not None and e.symbol not in plain and len(set(e.chances)) > 1)
    raw = next(e for e in ada if e.symbol in plain)
    for entry, chances, sentence in (
        (merged, tuple(reversed(merged.chances)), "does not follow"),
        (raw, (0.0,) * 5, "stands for other readings"),
        (raw, tuple(max(chance, 0.01) for chance in raw.chances), "stands for other readings"),
    ):
        fault = fault_in(written(rechained(ada, entry.number, chances=chances)), runtime)
        assert fault.number == entry.number
        assert sentence in fault.sentence


def test_a_processor_that_rounds_otherwise_finds_the_same_ledger_whole(runtimes, written, monkeypatch):
    """The program that finds the rule may give another one; the rule that was in force is in the entry."""
    for enforce in ("coarsen", "withhold"):
        ledger = written(played(runtimes[enforce], "ada"))
        noise, solve = np.random.default_rng(0), safety.cheapest_kernels
        with monkeypatch.context() as patch:
            patch.setattr(safety, "cheapest_kernels", lambda *a: solve(*a) * (1 + 0.01 * noise.random(5)))  # noqa: B023
            assert verify(ledger, runtimes[enforce]).fault is None


def test_another_symbol_than_was_sent_is_found_with_the_policy(runtimes, histories, written):
    runtime, ada = runtimes["withhold"], histories["withhold"]
    release = next(entry for entry in ada if entry.symbol not in (None, "withheld"))
    other = next(name for name in runtime.task.model.symbols if name != release.symbol)
    forged = written(rechained(ada, release.number, symbol=other))
    assert fault_in(forged, runtime).number == release.number


@pytest.mark.parametrize(
    ("enforce", "bound", "sentence"),
    [
        ("coarsen", Confidence(0.5), "brings the confidence to"),
        ("mask", Information(0.05), "brings the information to"),
    ],
)
def test_a_bound_that_is_reached_is_found(runtimes, histories, written, monkeypatch, enforce, bound, sentence):
    runtime, ada = runtimes[enforce], histories[enforce]
    monkeypatch.setattr(runtime, "task", replace(runtime.task, bound=bound))
    monkeypatch.setattr(runtime, "bound", bound)
    fault = fault_in(written(ada), runtime)
    assert sentence in fault.sentence
    limit, used = (0.5, "confidence") if enforce == "coarsen" else (0.05, "spent_bits")
    assert getattr(ada[fault.number], used) >= limit
    assert all(getattr(entry, used) < limit for entry in ada[: fault.number])
