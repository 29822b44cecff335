"""A damaged entry silences its subject and nobody else; it is mended from an export, and nothing spent is forgotten."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import InputError
from reticent.gateway.entry import COLUMNS, Entry, row_of
from reticent.gateway.export import read_entries, read_heads, write_export
from reticent.gateway.holds import all_holds, lift
from reticent.gateway.ledger import Damaged, LedgerTrouble
from reticent.gateway.messages import Message
from reticent.gateway.opening import open_ledger
from reticent.gateway.repair import repair
from reticent.gateway.sql_ledger import checked
from reticent.gateway.verify import verify
from tests.gateway.parts import Place
from tests.gateway.places import FilePlace, chain, entry_after

DEEP = "[" * 100_000
DAMAGE = [
    ("belief", DEEP),
    ("belief", "[[1" + "0" * 400 + "]]"),
    ("belief", "[[Infinity]]"),
    ("belief", b"\xff\xfe"),
    ("chances", DEEP),
    ("symbol", b"\x00\x01"),
    ("spent_bits", float("inf")),
    ("spent_bits", "much"),
    ("time", b"noon"),
    ("session", 1e300),
    ("step", "first"),
    ("number", "last"),
    ("number", b"\xff"),
    ("hash", None),
    ("policy", 7),
]


def broken(place, column, value, subject="ada"):
    """The newest entry of a subject with something else in it, past the guards of the table."""
    where = "WHERE subject = ? AND number = (SELECT max(number) FROM entries WHERE subject = ?)"
    # What may not be empty is made so by another name.
    value = b"" if value is None else value
    FilePlace(str(place.where)).unguarded(f"UPDATE entries SET {column} = ? {where}", (value, subject, subject))


@pytest.mark.parametrize(("column", "value"), DAMAGE)
def says(place, *subjects):
    """What all sensors of these subjects say now."""
    time = place.clock.now
    return [Message(who, sensor, time, symbol="1.87") for who in subjects for sensor in place.runtime.sensors]


@pytest.mark.parametrize(("column", "value"), DAMAGE)
def test_a_damaged_entry_silences_its_subject_only(place, column, value):
    assert len(place.tick()) == len(place.tick("bob")) == 1
    place.ledger.close()
    broken(place, column, value)
    place.start()
    place.gateway.delivered(place.gateway.resend())
    assert place.gateway.trouble is None
    place.clock.now += 1
    assert [out.subject for out in place.gateway.handle(says(place, "ada", "bob"))] == ["bob"]
    assert place.gateway.trouble is None
    assert list(place.ledger.holds()) == ["ada"]
    # Nobody who looks at it meets a traceback either.
    assert verify(place.ledger, place.runtime).fault is not None
    with pytest.raises(LedgerTrouble):
        write_export(place.ledger, place.where.with_suffix(".jsonl"))


def test_damage_under_a_gateway_that_runs(place):
    """It has the subject in memory, and meets the damage when it appends."""
    place.tick()
    place.tick("bob")
    broken(place, "number", "last")
    place.clock.now += 1
    assert [out.subject for out in place.gateway.handle(says(place, "ada", "bob"))] == ["bob"]
    assert place.gateway.counters["released"] == 3
    assert list(place.ledger.holds()) == ["ada"]
    place.clock.now += 1
    assert [out.subject for out in place.gateway.handle(says(place, "ada", "bob"))] == ["bob"]
    assert place.gateway.trouble is None


def test_damage_of_what_was_not_delivered(place):
    place.gateway.handle([place.message("ada"), place.message("bob")])
    place.ledger.close()
    broken(place, "belief", DEEP)
    place.start()
    assert [out.subject for out in place.gateway.resend()] == ["bob"]
    assert list(place.ledger.holds()) == ["ada"]
    assert place.gateway.trouble is None


def test_it_is_mended_from_an_export_and_lifted_and_nothing_is_forgotten(place, tmp_path):
    told = [place.tick(), place.tick()]
    assert [len(sent) for sent in told] == [1, 1]
    spent = place.ledger.last("ada")
    write_export(place.ledger, tmp_path / "export.jsonl")
    place.ledger.close()
    broken(place, "belief", DEEP)
    place.start()
    assert place.gateway.handle(says(place, "ada")) == []
    [hold] = all_holds(place.ledger, place.clock.now)
    assert hold.name == "ada"
    assert "is damaged and cannot be read" in hold.why
    with open_ledger(str(place.where), beside=True) as beside:
        with pytest.raises(Damaged):
            lift(beside, "ada", place.clock.now)
        assert [entry.number for entry in repair(beside, read_entries(tmp_path / "export.jsonl")).mended] == [1]
        assert place.gateway.handle(says(place, "ada")) == []
        assert lift(beside, "ada", place.clock.now)
        assert beside.last("ada") == spent
    assert [out.step for out in place.tick()] == [2]
    assert verify(place.ledger, place.runtime, read_heads(tmp_path / "export.jsonl")).fault is None


@pytest.mark.parametrize(("column", "value"), [("number", 77), ("subject", "nobody"), ("hash", "00"), ("time", 1.0)])
def test_wherever_it_is_damaged_it_comes_back_to_its_place(ledger_place, tmp_path, column, value):
    ada, bob = chain("ada", 4), chain("bob", 3)
    with ledger_place.open() as ledger:
        ledger.append([*ada, *bob])
        write_export(ledger, tmp_path / "export.parquet")
    mark = ledger_place.mark
    statement = f"UPDATE entries SET {column} = {mark} WHERE subject = 'ada' AND number = 3"
    ledger_place.unguarded(statement, (value,))
    with ledger_place.open() as ledger:
        assert verify(ledger, heads=read_heads(tmp_path / "export.parquet")).fault is not None
        assert repair(ledger, read_entries(tmp_path / "export.parquet")).mended == ada[3:]
        assert list(ledger.entries()) == [*ada, *bob]
        assert verify(ledger).fault is None
    # The guard is back.
    with pytest.raises(Exception, match="never changed"):
        ledger_place.raw("UPDATE entries SET time = 0")


def test_an_older_export_mends_nothing_that_it_does_not_hold(tmp_path):
    ada, where = chain("ada", 4), FilePlace(str(tmp_path / "ledger.db"))
    with where.open() as ledger:
        ledger.append(ada[:2])
        write_export(ledger, tmp_path / "old.jsonl")
        ledger.append(ada[2:])
    where.unguarded("UPDATE entries SET spent_bits = 0 WHERE number = 3")
    with where.open() as ledger:
        assert repair(ledger, read_entries(tmp_path / "old.jsonl")).mended == []
        # What was damaged stays, and its subject stays silent: its spending is not known.
        with pytest.raises(Damaged):
            ledger.last("ada")


def test_an_export_of_another_ledger_changes_nothing(tmp_path):
    mine, other = (FilePlace(str(tmp_path / name)) for name in ("mine.db", "other.db"))
    first = entry_after(None, spent_bits=0.5)
    with other.open() as ledger:
        ledger.append([first, entry_after(first)])
        write_export(ledger, tmp_path / "other.jsonl")
    with mine.open() as ledger:
        ledger.append(chain("ada", 3))
    mine.unguarded("UPDATE entries SET time = 1 WHERE number = 1")
    with mine.open() as ledger:
        found = repair(ledger, read_entries(tmp_path / "other.jsonl"))
        assert found.mended == []
        assert "is whole, and another one" in found.refused[0]
        assert "does not fit" in found.refused[1]
        with pytest.raises(Damaged):
            ledger.at("ada", 1)


def test_an_export_that_was_edited_mends_nothing(tmp_path):
    with FilePlace(str(tmp_path / "ledger.db")).open() as ledger:
        ledger.append(chain("ada", 1))
        write_export(ledger, tmp_path / "export.jsonl")
    row = json.loads((tmp_path / "export.jsonl").read_text())
    (tmp_path / "export.jsonl").write_text(json.dumps({**row, "spent_bits": 0.0}) + "\n")
    with pytest.raises(InputError, match="cannot be read as an export"):
        list(read_entries(tmp_path / "export.jsonl"))


ANYTHING = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.binary(max_size=20),
    st.text(st.characters(), max_size=20),
    st.sampled_from(["[[1e999]]", "[[1" + "0" * 400 + "]]", "{}", "[[]]", "[[null]]", '[["a"]]', "0", DEEP]),
    st.recursive(st.floats(), lambda inner: st.lists(inner, max_size=3), max_leaves=6).map(json.dumps),
)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(COLUMNS), ANYTHING, min_size=1, max_size=3))
def test_whatever_stands_in_a_row_is_an_entry_or_damage(changed):
    row = dict(zip(COLUMNS, row_of(entry_after(None)), strict=True)) | changed
    with suppress(Damaged):
        assert isinstance(checked(tuple(row.values())), Entry)


@settings(max_examples=25)
@given(column=st.sampled_from(COLUMNS), value=ANYTHING)
def test_whatever_stands_in_a_column_nobody_else_is_silent(tmp_path_factory, column, value):
    place = Place(tmp_path_factory.mktemp("any"))
    place.gateway.handle([place.message("ada"), place.message("bob")])
    place.ledger.close()
    with suppress(Exception):
        # What SQLite itself refuses is no damage.
        broken(place, column, value)
    place.start()
    place.gateway.delivered(place.gateway.resend())
    place.clock.now += 1
    sent = place.gateway.handle(says(place, "ada", "bob"))
    assert "bob" in {out.subject for out in sent}
    assert place.gateway.trouble is None
    assert verify(place.ledger, place.runtime).entries <= 2
    with suppress(LedgerTrouble):
        assert len(list(all_holds(place.ledger, place.clock.now))) <= 1
    place.ledger.close()
