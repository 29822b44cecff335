"""Whatever is wrong, nothing leaves; the reason is told, and where that is safe releases go on by themselves."""

import hashlib
import json
import shutil

import numpy as np
import pytest

from reticent.errors import InputError
from reticent.gateway import writer
from reticent.gateway.entry import COLUMNS, row_of
from reticent.gateway.ledger import LedgerTrouble
from reticent.gateway.messages import Message
from reticent.gateway.runtime import Runtime
from reticent.gateway.service import Gateway
from reticent.gateway.settings import Settings
from reticent.gateway.verify import verify
from reticent.problem.bound import Information
from reticent.problem.model import Model
from tests.gateway.parts import NOON, Place, task, write_policy
from tests.gateway.places import FilePlace


def test_ledger_trouble_stops_releases_until_it_is_over(place):
    place.tick()
    for fails in ("before", "after"):
        place.ledger.fails = fails
        assert place.tick() == []
        assert "Make room" in str(place.gateway.trouble) or "Mend it" in str(place.gateway.trouble)
        assert place.gateway.counters["trouble"] > 0
    place.ledger.fails = None
    # What came on disk although the ledger complained is sent too, before anything that builds on it.
    assert [out.step for _ in range(2) for out in place.tick()][:2] == [1, 2]
    assert place.gateway.trouble is None
    assert [entry.number for entry in place.ledger.entries("ada")][:3] == [0, 1, 2]


def test_trouble_is_over_once_the_ledger_can_be_written_although_nothing_comes(place, monkeypatch):
    monkeypatch.setattr(writer, "SECONDS_BETWEEN_TRIES", 0.0)
    place.tick()
    place.ledger.fails = "before"
    assert place.tick() == []
    with monkeypatch.context() as patch:
        patch.setattr(place.ledger, "probe", full)
        assert place.gateway.handle([]) == []
        assert "Make room" in str(place.gateway.trouble)
    place.ledger.fails = None
    assert place.gateway.handle([]) == []
    assert place.gateway.trouble is None


def full(*_):
    raise LedgerTrouble("The disk is full. Make room.")


def test_what_another_gateway_delivered_is_no_longer_under_way(place):
    sent = place.gateway.handle([place.message()])
    other = Gateway(place.runtime, place.ledger, Settings(place.policy), place.clock, lambda: place.draws)
    other.delivered(other.resend())
    assert len(place.gateway._outbox) == len(sent) == 1
    assert place.gateway.resend() == []
    assert len(place.gateway._outbox) == 0


def test_trouble_with_reading_the_ledger_stops_releases_too(place):
    message = place.message()
    place.ledger.fails = "reading"
    assert place.gateway.handle([message]) == []
    assert "Plug it in" in str(place.gateway.trouble)
    place.ledger.fails = None
    assert len(place.tick()) == 1
    assert place.gateway.trouble is None


def test_an_older_copy_of_the_ledger_is_not_gone_on_from(place, tmp_path):
    place.tick()
    place.ledger.close()
    shutil.copy(place.where, tmp_path / "copy.db")
    place.start()
    place.tick()
    gateway = place.gateway
    place.ledger.close()
    shutil.copy(place.where, tmp_path / "newest.db")

    shutil.copy(tmp_path / "copy.db", place.where)
    place.ledger.reopen()
    assert place.tick() == []
    assert gateway.trouble
    assert place.tick() == []
    assert "older copy" in gateway.trouble
    place.ledger.close()

    shutil.copy(tmp_path / "newest.db", place.where)
    place.ledger.reopen()
    assert [out.step for out in place.tick()] == [2]
    assert gateway.trouble is None


def test_two_gateways_on_one_subject_never_release_one_step_twice(place):
    other = Gateway(place.runtime, place.ledger, Settings(place.policy), place.clock, lambda: place.draws)
    told = [(out.session, out.step) for out in place.tick()]
    place.clock.now += 1
    sent = other.handle([place.message()])
    other.delivered(sent)
    told += [(out.session, out.step) for out in sent]
    assert place.tick() == []
    assert place.gateway.counters["taken"] == 1
    told += [(out.session, out.step) for _ in range(2) for out in place.tick()]
    assert told == sorted(set(told))
    assert len(told) >= 3
    assert place.gateway.trouble is None


def test_another_policy_file_stops_releases_until_the_original_is_back(place, tmp_path):
    place.tick()
    kept = shutil.copy2(place.policy, tmp_path / "kept")
    write_policy(place.policy, seed=1)
    assert place.tick() == []
    assert "was replaced" in str(place.gateway.trouble)
    assert place.runtime.digest[:12] in str(place.gateway.trouble)
    place.policy.unlink()
    assert place.tick() == []
    assert "cannot be read" in str(place.gateway.trouble)
    shutil.copy2(kept, place.policy)
    assert len(place.tick()) == 1
    assert place.gateway.trouble is None


def test_the_ledger_of_another_policy_is_not_carried_over(place, tmp_path):
    place.tick()
    place.ledger.close()
    write_policy(place.policy, seed=1)
    place.runtime = Runtime.load(place.policy)
    place.start()
    assert place.tick() == []
    assert place.gateway.counters["blocked"] == 1
    assert "another policy" in place.gateway.snapshot("ada")["chosen"]["blocked"]
    assert place.gateway.trouble is None
    assert len(place.tick("bob")) == 1


def test_a_clock_behind_the_ledger_stops_releases_until_it_catches_up(place):
    place.clock.now = NOON + 1000
    place.tick()
    place.clock.now = NOON
    assert place.tick() == []
    assert "The clock went back: it was 2023-11-14T22:30:01" in str(place.gateway.trouble)
    assert place.tick("bob") == []
    place.clock.now = NOON + 1001
    assert len(place.tick()) == 1
    assert place.gateway.trouble is None


def test_a_clock_behind_the_start_stops_releases_too(place):
    place.clock.now = NOON - 1
    assert place.gateway.handle([place.message()]) == []
    assert "The clock went back" in str(place.gateway.trouble)


def test_a_subject_ahead_of_the_clock_holds_back_itself_only(place, caplog):
    place.tick(seconds=1000)
    place.ledger.close()
    place.clock.now = NOON
    place.start()
    sent = place.gateway.handle([place.message("eve"), place.message("ada")])
    assert [out.subject for out in sent] == ["eve"]
    assert place.gateway.trouble is None
    assert place.gateway.counters["clock"] == 1
    assert "set the clocks right" in caplog.text
    place.gateway.delivered(sent)
    assert len(place.tick("bob")) == 1
    place.clock.now = NOON + 1001
    assert len(place.tick()) == 1


def test_clocks_of_gateways_may_differ_a_little(place):
    """Whose clock is behind writes the time of the entry before it: within a subject time does not go back."""
    place.tick(seconds=4)
    behind = Gateway(place.runtime, place.ledger, Settings(place.policy), lambda: NOON + 2.5, lambda: place.draws)
    [sent] = behind.handle([place.message(time=NOON + 4.2)])
    behind.delivered([sent])
    first, second = place.ledger.entries("ada")
    assert second.time == first.time == NOON + 4
    assert verify(place.ledger, place.runtime).fault is None


def rewritten(place, **changed):
    """The newest entry of ada with other fields, and a hash that fits."""
    entry = place.ledger.last("ada")
    place.ledger.close()
    columns = ("belief", "spent_bits", "time")
    row = dict(zip(COLUMNS, row_of(entry), strict=True)) | changed
    text = json.loads(entry.canonical()) | {name: row[name] for name in columns} | {"belief": json.loads(row["belief"])}
    canonical = json.dumps(text, sort_keys=True, separators=(",", ":"))
    row["hash"] = hashlib.sha256(canonical.encode()).hexdigest()
    changes = ", ".join(f"{name} = ?" for name in COLUMNS)
    FilePlace(str(place.where)).unguarded(f"UPDATE entries SET {changes} WHERE subject = 'ada'", tuple(row.values()))
    place.start()


@pytest.mark.parametrize("changed", [{"time": 1e18}, {"spent_bits": -1.0}, {"belief": "[[1.0],[]]"}])
def test_an_entry_that_makes_no_sense_is_damage_although_its_hash_is_right(place, changed):
    place.tick()
    rewritten(place, **changed)
    assert place.gateway.handle([Message("ada", "a0", NOON + 5, symbol="1.87")]) == []
    blocked = place.gateway.snapshot("ada")["chosen"]["blocked"]
    assert "Entry 0 of subject 'ada' is damaged and cannot be read" in blocked
    assert place.gateway.trouble is None
    assert verify(place.ledger).fault is not None
    assert len(place.tick("bob", seconds=6)) == 1


@pytest.mark.parametrize(
    "belief", ["[[0.5,0.5]]", "[[0.9,0.9],[0.9,0.9]]", "[[1.0,0.5,-0.5],[0.0,0.0,0.0],[0.0,0.0,0.0]]"]
)
def test_a_belief_that_cannot_be_holds_back_its_subject(place, belief):
    place.tick()
    rewritten(place, belief=belief)
    assert place.gateway.handle([Message("ada", "a0", NOON + 5, symbol="1.87")]) == []
    assert "is not one over this policy's model" in place.gateway.snapshot("ada")["chosen"]["blocked"]
    assert len(place.tick("bob", seconds=6)) == 1


def test_pause_resume_and_stop(place):
    place.tick()
    place.gateway.pause()
    assert "Resume" in str(place.gateway.trouble)
    assert place.tick() == []
    place.gateway.resume()
    assert place.gateway.trouble is None
    assert [out.step for out in place.tick()] == [1]
    place.gateway.stop()
    place.gateway.resume()
    assert place.tick() == []
    assert place.gateway.stopped
    assert "Restart it" in str(place.gateway.trouble)


def test_a_pause_also_holds_back_what_was_not_delivered(place):
    sent = place.gateway.handle([place.message()])
    place.gateway.pause()
    assert place.gateway.resend() == []
    place.gateway.resume()
    assert place.gateway.handle([]) == sent


def test_a_pause_outlives_the_gateway(place):
    place.tick()
    place.gateway.pause()
    place.gateway.remember()
    place.again()
    assert place.tick() == []
    assert "Resume" in str(place.gateway.trouble)
    assert place.gateway.snapshot()["paused"]
    place.gateway.resume()
    assert len(place.tick()) == 1
    place.again()
    assert len(place.tick()) == 1


def test_a_pause_that_cannot_be_written_holds_and_is_written_later(place, monkeypatch):
    place.tick()
    with monkeypatch.context() as patch:
        patch.setattr(place.ledger, "hold", full)
        place.gateway.pause()
        place.gateway.remember()
        assert "Make room" in str(place.gateway.trouble)
        assert place.tick() == []
    place.gateway.handle([])
    place.again()
    assert place.tick() == []


def test_who_is_blocked_is_held_before_the_entry_is_written(tmp_path):
    """A gateway that ends in between leaves the subject silent."""
    place = odd_world(tmp_path)
    order = []
    append, hold = place.ledger.append, place.ledger.hold
    place.ledger.append = lambda entries: order.append("append") or append(entries)
    place.ledger.hold = lambda name, why: order.append("hold") or hold(name, why)
    for i in range(40):
        place.tick("ada", reading=i % 2)
    assert order[-2:] == ["hold", "append"]
    place.ledger.close()


def test_other_troubles_are_told_too(place):
    place.gateway.report("broker", "The broker is gone. Start it.")
    assert place.tick() == []
    place.gateway.pause()
    assert place.gateway.trouble.endswith("The broker is gone. Start it.")
    place.gateway.report("broker", None)
    place.gateway.resume()
    assert len(place.tick()) == 1


def odd_world(tmp_path, **settings):
    """A model that is nearly sure what its sensors say, and sensors that say the other thing half of the time."""
    channel = np.full((1, 2, 2, 2), 0.5)
    channel[..., 0], channel[..., 1] = 0.98, 0.02
    model = Model(np.full((2, 2), 0.25), channel, ("s0", "s1"), ("u0", "u1"), ("a0",), ("0", "1"))
    return Place(tmp_path, task(Information(1.0), "mask", 100, model), **settings)


def test_a_subject_that_drifts_is_silent_and_the_others_go_on(tmp_path, caplog):
    place = odd_world(tmp_path)
    told = [len(place.tick("ada", reading=i % 2)) for i in range(60)]
    silent = told.index(0)
    assert 20 <= silent < 40
    assert told[silent:] == [0] * (60 - silent)
    assert place.gateway.counters["blocked"] == 60 - silent
    assert "no longer fits" in place.gateway.snapshot("ada")["chosen"]["blocked"]
    assert place.gateway.trouble is None
    assert sum(len(place.tick("bob", reading=0)) for _ in range(60)) == 60
    assert "no-drift-check" in caplog.text
    place.again(drift_check=False)
    assert sum(len(place.tick("ada", reading=i % 2)) for i in range(30)) == 30
    place.ledger.close()


def test_who_drifted_is_remembered_when_memory_is_full(tmp_path):
    place = odd_world(tmp_path, subjects=1)
    for i in range(60):
        place.tick("ada", reading=i % 2)
    place.tick("bob", reading=0)
    assert place.gateway.snapshot()["in_memory"] == 1
    assert place.tick("ada", reading=0) == []
    assert place.gateway.trouble is None
    place.ledger.close()


def test_who_drifted_stays_silent_after_a_restart_until_drift_is_not_checked(tmp_path):
    place = odd_world(tmp_path)
    for i in range(60):
        place.tick("ada", reading=i % 2)
    place.again()
    assert place.tick("ada", reading=0) == []
    assert place.gateway.counters["blocked"] == 1
    assert "also after a restart" in place.gateway.snapshot("ada")["chosen"]["blocked"]
    assert len(place.tick("bob", reading=0)) == 1
    place.again(drift_check=False)
    assert len(place.tick("ada", reading=0)) == 1
    # It was lifted for good.
    place.again()
    assert len(place.tick("ada", reading=0)) == 1
    place.ledger.close()


def test_an_impossible_reading_is_drift_at_once(tmp_path):
    channel = np.zeros((1, 2, 2, 3))
    channel[..., :2] = 0.5
    model = Model(np.full((2, 2), 0.25), channel, ("s0", "s1"), ("u0", "u1"), ("a0",), ("0", "1", "2"))
    place = Place(tmp_path, task(Information(1.0), "mask", 100, model))
    assert len(place.tick(reading=0)) == 1
    assert place.tick(reading=2) == []
    assert place.tick(reading=0) == []
    assert place.gateway.counters["impossible"] == place.gateway.counters["asked but unusable"] == 1
    assert place.gateway.counters["blocked"] == 1
    place.again()
    assert place.tick(reading=0) == []
    place.again(drift_check=False)
    assert place.tick(reading=2) == []
    assert len(place.tick(reading=0)) == 1
    place.ledger.close()


def test_what_the_runtime_will_not_let_pass_blocks_the_subject(place, monkeypatch):
    def refuse(*_):
        raise InputError("What it would send crosses the bound.")

    monkeypatch.setattr(place.runtime, "release", refuse)
    assert place.tick() == []
    assert place.gateway.counters["refused"] == 1
    assert "crosses" in place.gateway.snapshot("ada")["chosen"]["blocked"]
    monkeypatch.undo()
    assert place.tick() == []
    assert len(place.tick("bob")) == 1
    place.again(drift_check=False)
    assert place.tick() == []
    assert "crosses" in place.gateway.snapshot("ada")["chosen"]["blocked"]
