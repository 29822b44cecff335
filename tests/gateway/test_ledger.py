"""What every ledger promises, run on each kind: a file, and a database of a real server."""

import dataclasses
import hashlib
import json
import subprocess
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import InputError
from reticent.gateway.entry import COLUMNS, Entry
from reticent.gateway.ledger import EVERYBODY, LedgerTrouble
from reticent.gateway.sql_ledger import PAGE
from reticent.gateway.standing import standing_of
from reticent.gateway.verify import verify
from tests.gateway.places import chain, entry_after, fields_of

NAMES = ["Zoë", "ada", "a b/c#+%s?", "ada ", "\U0001f642", "\u00e9"]


def test_the_hash_by_hand():
    entry = Entry("ada", 0, 12.0, 11.5, 0, 0, "stop", None, None, ((0.25, 0.75),), 0.1, "p", "")
    text = (
        '{"before":"","belief":[[0.25,0.75]],"chances":null,"measured":11.5,"number":0,"policy":"p","sensor":"stop","session":0,"spent_bits":0.1,'
        '"step":0,"subject":"ada","symbol":null,"time":12.0}'
    )
    assert entry.canonical() == text
    assert entry.hash == hashlib.sha256(text.encode()).hexdigest()
    assert entry.confidence == 1.0


def test_minus_zero_hashes_as_zero():
    first = entry_after(None, spent_bits=0.0)
    assert entry_after(None, spent_bits=-0.0).hash == first.hash


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"subject": ""}, "needs a name"),
        ({"subject": "a\0b"}, "needs a name"),
        ({"subject": "\ud800"}, "needs a name"),
        ({"symbol": None}, "A release has a symbol"),
        ({"sensor": "stop"}, "a stop has none"),
        ({"number": 1}, "which entry was before"),
        ({"before": "ab"}, "which entry was before"),
        ({"step": -1}, "which entry was before"),
        ({"time": float("nan")}, "not finite"),
        ({"measured": float("-inf")}, "not finite"),
        ({"spent_bits": float("inf")}, "not finite"),
        ({"belief": ((0.5, float("nan")),)}, "not finite"),
        ({"chances": (0.5, float("inf"))}, "not finite"),
        ({"time": 1e18}, "cannot be"),
        ({"time": -1.0}, "cannot be"),
        ({"measured": 1e18}, "cannot be"),
        ({"spent_bits": -0.1}, "cannot be"),
        ({"belief": ()}, "no table"),
        ({"belief": ((), ())}, "no table"),
        ({"belief": ((0.5, 0.25), (0.25,))}, "no table"),
        ({"belief": ((0.5, 0.5), ())}, "no table"),
    ],
)
def test_nonsense_is_no_entry(changed, sentence):
    with pytest.raises(InputError, match=sentence):
        entry_after(None, **changed)


def test_what_comes_back_is_what_was_written(ledger_place):
    with ledger_place.open() as ledger:
        assert ledger.last("ada") is None
        assert ledger.subjects() == []
        assert list(ledger.entries()) == []
        written = chain("ada", 7)
        assert ledger.append(written) == [True] * 7
        assert ledger.append([]) == []
        assert ledger.last("ada") == written[-1]
    with ledger_place.open() as ledger:
        assert list(ledger.entries("ada")) == written
        assert ledger.counts("ada") == ledger.counts("ada").__class__(entries=7, releases=6, sessions=2)
        assert ledger.counts("nobody").entries == 0


def test_every_digit_is_kept(ledger_place):
    rng = np.random.default_rng(0)
    last, written = None, []
    for _ in range(50):
        # All magnitudes, down to numbers that are not normal.
        belief = (rng.random((2, 3)) * 10.0 ** rng.integers(-320, 300, (2, 3))).tolist()
        bits, seconds = (rng.random(2) * 10.0 ** rng.integers(-320, (300, 11))).tolist()
        chances = tuple((rng.random(4) * 10.0 ** rng.integers(-320, 1, 4)).tolist())
        last = entry_after(last, chances=chances, belief=tuple(map(tuple, belief)), spent_bits=bits, time=seconds)
        written.append(last)
    with ledger_place.open() as ledger:
        ledger.append(written)
        assert [entry.hash for entry in ledger.entries()] == [entry.hash for entry in written]
        assert list(ledger.entries()) == written


def test_what_is_held_stays_held_until_it_is_lifted(ledger_place):
    with ledger_place.open() as ledger:
        assert ledger.held(["ada"]) == {}
        ledger.hold("ada", "drift")
        ledger.hold(EVERYBODY, "paused")
    with ledger_place.open() as ledger:
        assert ledger.held(["ada", EVERYBODY, "bob"]) == {"ada": "drift", EVERYBODY: "paused"} == ledger.holds()
        # More than one question can name.
        assert ledger.held([*map(str, range(2 * PAGE)), "ada"]) == {"ada": "drift"}
        ledger.hold("ada", None)
        ledger.hold(EVERYBODY, "another reason")
        assert ledger.held(["ada", EVERYBODY]) == {EVERYBODY: "another reason"} == ledger.holds()
        assert ledger.subjects() == []


def test_subjects_with_any_name_in_order_of_code_points(ledger_place):
    with ledger_place.open() as ledger:
        written = {name: chain(name, 3) for name in NAMES}
        ledger.append([entry for entries in zip(*written.values(), strict=True) for entry in entries])
        assert ledger.subjects() == sorted(NAMES)
        assert list(ledger.entries()) == [entry for name in sorted(NAMES) for entry in written[name]]
        assert ledger.last("ada ") == written["ada "][-1]


def test_entries_are_streamed_page_by_page(ledger_place):
    written = chain("ada", 2 * PAGE + 3)
    with ledger_place.open() as ledger:
        ledger.append(written)
        reading = ledger.entries("ada")
        first = [next(reading) for _ in range(5)]
        # What comes while somebody reads is read too, and does not disturb.
        more = chain("ada", 2, written[-1])
        ledger.append(more)
        assert [*first, *reading] == [*written, *more]


def test_a_number_can_be_taken_once(ledger_place):
    with ledger_place.open() as ledger:
        ada, bob = chain("ada", 3), chain("bob", 2)
        ledger.append(ada[:1])
        other = entry_after(ada[0], time=ada[1].time + 1)
        assert ledger.append([other]) == [True]
        # The number is taken, so neither it nor what follows it may leave; of bob all may.
        assert ledger.append([ada[1], bob[0], ada[2], bob[1]]) == [False, True, False, True]
        assert list(ledger.entries()) == [ada[0], other, *bob]


def test_what_is_there_already_counts_as_written(ledger_place):
    with ledger_place.open() as ledger:
        ada = chain("ada", 4)
        ledger.append(ada[:2])
        assert ledger.append(ada[:3]) == [True] * 3
        assert ledger.append(ada[3:]) == [True]
        assert list(ledger.entries()) == ada
        assert ledger.append([entry_after(ada[3]), entry_after(ada[3])]) == [True, False]


@pytest.mark.parametrize("wrong", ["gap", "rewritten"])
def test_who_knows_another_ledger_writes_nothing(ledger_place, wrong):
    with ledger_place.open() as ledger:
        ada, bob = chain("ada", 5), chain("bob", 1)
        ledger.append(ada[:3])
        strange = ada[4] if wrong == "gap" else entry_after(entry_after(ada[1], time=ada[2].time + 1))
        with pytest.raises(LedgerTrouble, match="an older copy was restored, or the ledger was rewritten"):
            ledger.append([*bob, strange])
        assert list(ledger.entries()) == ada[:3]
        assert ledger.append([*bob, ada[3]]) == [True, True]


def test_undelivered_until_marked(ledger_place):
    with ledger_place.open() as ledger:
        ada, bob = chain("ada", 4), chain("bob", 2)
        assert ledger.undelivered().entries == []
        ledger.append([*bob, *ada])
        assert ledger.undelivered().entries == [*ada, *bob]
        ledger.mark_delivered([ada[0], ada[1], ada[2]])
        ledger.mark_delivered([ada[0]])
        ledger.mark_delivered([])
        assert ledger.undelivered().entries == [ada[3], *bob]
    with ledger_place.open() as ledger:
        assert ledger.undelivered().entries == [ada[3], *bob]
        ledger.mark_delivered([bob[0], ada[3], bob[1]])
        assert ledger.undelivered().entries == []
        assert list(ledger.entries()) == [*ada, *bob]


def test_a_later_entry_does_not_vouch_for_an_earlier_one(ledger_place):
    with ledger_place.open() as ledger:
        ada = chain("ada", 4)
        ledger.append(ada)
        ledger.mark_delivered([ada[1]])
        assert ledger.undelivered().entries == ada
        ledger.mark_delivered([ada[0], ada[3]])
        assert ledger.undelivered().entries == ada[1:]
        ledger.mark_delivered([ada[0], ada[1], ada[2]])
        assert ledger.undelivered().entries == ada[3:]
        assert ledger.undelivered_from(["ada", "bob"]) == {"ada": 3, "bob": 0}


def test_trying_to_write_changes_nothing(ledger_place):
    with ledger_place.open() as ledger:
        ledger.append(chain("ada", 2))
        ledger.hold(EVERYBODY, "paused")
        ledger.probe()
        ledger.probe()
        assert ledger.holds() == {EVERYBODY: "paused"}
        assert ledger.undelivered().entries == chain("ada", 2)
    with ledger_place.open(read_only=True) as reader, pytest.raises(LedgerTrouble, match="cannot be written"):
        reader.probe()


def test_readers_read_meanwhile_and_cannot_write(ledger_place):
    with ledger_place.open() as ledger:
        ada = chain("ada", 3)
        ledger.append(ada[:1])
        with ledger_place.open(read_only=True) as reader:
            assert reader.last("ada") == ada[0]
            ledger.append(ada[1:2])
            assert list(reader.entries()) == ada[:2]
            with pytest.raises(LedgerTrouble, match="cannot be written"):
                reader.append(ada[2:])
            with pytest.raises(LedgerTrouble, match="cannot be written"):
                reader.mark_delivered(ada[:1])
        assert ledger.append(ada[2:]) == [True]


def test_nothing_is_read_where_nothing_is(ledger_place):
    with pytest.raises(LedgerTrouble):
        ledger_place.open(read_only=True)


@pytest.mark.parametrize(
    "statement", ["UPDATE entries SET time = 1", "DELETE FROM entries", "DELETE FROM entries WHERE number = 1"]
)
def test_entries_are_never_changed_or_removed(ledger_place, statement):
    written = chain("ada", 3)
    with ledger_place.open() as ledger:
        ledger.append(written)
    with pytest.raises(Exception, match="entries are never"):
        ledger_place.raw(statement)
    with ledger_place.open() as ledger:
        assert list(ledger.entries()) == written


def test_another_version_is_refused(ledger_place):
    ledger_place.open().close()
    ledger_place.new_version(99)
    for read_only in (False, True):
        with pytest.raises(LedgerTrouble, match=r"version .*99"):
            ledger_place.open(read_only)


def test_one_thread_uses_it(ledger_place):
    raised = []

    def use(call):
        try:
            call()
        except RuntimeError as error:
            raised.append(str(error))

    ledger = ledger_place.open()
    ledger.last("ada")
    for call in (
        lambda: ledger.append([entry_after(None)]),
        lambda: ledger.mark_delivered([entry_after(None)]),
        ledger.undelivered,
        lambda: ledger.last("ada"),
        lambda: next(ledger.entries()),
    ):
        thread = threading.Thread(target=use, args=(call,))
        thread.start()
        thread.join()
    assert len(raised) == 5
    assert all("used from one thread" in sentence for sentence in raised)
    assert ledger.append([entry_after(None)]) == [True]
    ledger.close()


def test_who_opens_it_may_hand_it_over(ledger_place):
    ledger, written = ledger_place.open(), []
    thread = threading.Thread(target=lambda: written.extend(ledger.append([entry_after(None)])))
    thread.start()
    thread.join()
    assert written == [True]
    ledger.close()
    ledger.close()


def test_what_is_closed_stays_closed(ledger_place):
    ledger = ledger_place.open()
    ledger.close()
    for call in (lambda: ledger.last("ada"), lambda: ledger.append([entry_after(None)])):
        with pytest.raises(RuntimeError, match="has been closed"):
            call()


EDITS = {
    "subject": "bob",
    "number": 7,
    "time": 1.5,
    "session": 1,
    "step": 9,
    "measured": 1.7e9 + 17,
    "sensor": "stop",
    "symbol": "code 4",
    "chances": "[0.0,0.25000000000000006]",
    "belief": "[[0.1,0.2],[0.3,0.4000000000000001]]",
    "spent_bits": 0.30000000000000001,
    "policy": "",
    "before": "00",
    "hash": "00",
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("number", [0, 3])
def test_an_edit_of_any_column_is_found(ledger_place, column, number):
    with ledger_place.open() as ledger:
        ledger.append([*chain("ada", 4), *chain("zoe", 2)])
    ledger_place.unguarded(
        f"UPDATE entries SET {column} = {ledger_place.mark} WHERE subject = 'ada' AND number = {number}",
        (EDITS[column],),
    )
    with ledger_place.open(read_only=True) as ledger:
        assert verify(ledger).fault is not None


def test_what_is_damaged_is_not_gone_on_from(ledger_place):
    with ledger_place.open() as ledger:
        ledger.append([*chain("ada", 4), *chain("zoe", 2)])
    ledger_place.unguarded("UPDATE entries SET spent_bits = 0 WHERE subject = 'ada' AND number = 3")
    with ledger_place.open() as ledger:
        with pytest.raises(LedgerTrouble, match=r"Entry 3 of subject 'ada' does not match its hash"):
            ledger.last("ada")
        assert ledger.last("zoe") is not None


def test_a_standing_comes_back_from_an_entry():
    release, stop = chain("ada", 5)[-2:]
    after = standing_of(release)
    assert after.belief.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert (after.spent_bits, after.session, after.step) == (release.spent_bits, 0, 4)
    # A stop is no release.
    assert standing_of(stop).step == 4


FIELDS = [field.name for field in dataclasses.fields(Entry)]
CHANGES = {
    "number": st.integers(-(2**62), 2**62),
    "time": st.floats(allow_nan=False, allow_infinity=False),
    "measured": st.floats(allow_nan=False, allow_infinity=False),
    "session": st.integers(-(2**62), 2**62),
    "step": st.integers(-(2**62), 2**62),
    "spent_bits": st.floats(allow_nan=False, allow_infinity=False),
    "belief": st.tuples(st.tuples(st.floats(0, 1), st.floats(0, 1))),
    "chances": st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)),
    "symbol": st.none() | st.text(),
}


@given(data=st.data(), name=st.sampled_from(FIELDS))
def test_other_fields_have_another_hash(data, name):
    entry = chain("ada", 3)[-1]
    value = data.draw(CHANGES.get(name, st.text()))
    try:
        changed = Entry(**{**fields_of(entry), name: value})
    except InputError:
        return
    assert (changed.hash == entry.hash) == (changed == entry)


def test_each_hash_is_the_next_ones_before():
    entries = chain("ada", 12)
    assert all(after.before == entry.hash for entry, after in pairwise(entries))
    assert len({entry.hash for entry in entries}) == 12
    assert json.loads(entries[3].canonical())["before"] == entries[2].hash


def test_a_ledger_is_read_without_numpy():
    """So that `reticent ledger show` is quick, and a gateway small."""
    code = (
        "import sys, reticent.gateway.sqlite; sys.exit(bool({'numpy', 'jax', 'polars', 'psycopg'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
