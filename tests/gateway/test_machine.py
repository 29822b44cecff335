"""Two gateways on one ledger, in any order: readings, crashes around delivery, pauses, clocks, restarts, lifts.

Whatever happens, what was delivered is a beginning of each chain, to the byte; nothing that crosses the bound is on
disk, and no reading twice; while a pause is in the ledger nothing leaves; and in the end everything that is on disk was
delivered.
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from reticent.gateway.holds import lift
from reticent.gateway.ledger import EVERYBODY, Ledger
from reticent.gateway.messages import Message, Outgoing
from reticent.gateway.opening import open_ledger
from reticent.gateway.runtime import Runtime
from reticent.gateway.service import Gateway
from reticent.gateway.settings import Settings
from reticent.gateway.verify import verify
from reticent.problem.synthetic import two_binary_sensors
from tests.gateway.parts import Clock, task, write_policy

SUBJECTS, WHICH = st.sampled_from(["ada", "bob"]), st.integers(0, 1)


class Gateways(RuleBasedStateMachine):
    """The provider keeps all it hears, in order."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="reticent-machine-"))
        self.policy = write_policy(self.folder / "policy.safetensors", task(horizon=2, model=two_binary_sensors()))
        self.runtime, self.clocks = Runtime.load(self.policy), [Clock(), Clock()]
        self.draws = np.random.default_rng(0)
        self.ledgers: list[Ledger] = [self._open(0), self._open(1)]
        self.gateways = [self._started(0), self._started(1)]
        self.heard: list[Outgoing] = []
        self.said: list[tuple[str, int, float]] = []
        self.paused = False

    def teardown(self) -> None:
        if not hasattr(self, "folder"):
            return
        try:
            self._settle()
        finally:
            for ledger in self.ledgers:
                ledger.close()
            shutil.rmtree(self.folder)

    def _open(self, which: int) -> Ledger:
        return open_ledger(str(self.folder / "ledger.db"), beside=which == 1)

    def _started(self, which: int) -> Gateway:
        chosen = Settings(self.policy, rest=2.0, subjects=1 + which)
        return Gateway(self.runtime, self.ledgers[which], chosen, self.clocks[which], lambda: self.draws)

    def _speak(self, which: int, subject: str, symbol: int, time: float | None = None) -> list[Outgoing]:
        """What every sensor of a subject says, a second later or once more as it did at some time."""
        if time is None:
            self.wait(1.0)
            time = self.clocks[which].now
            self.said.append((subject, symbol, time))
        name = self.runtime.task.model.symbols[symbol]
        sent = self.gateways[which].handle([Message(subject, s, time, symbol=name) for s in self.runtime.sensors])
        assert not (self.paused and sent)
        return sent

    def _deliver(self, which: int, sent: list[Outgoing]) -> None:
        self.heard += sent
        self.gateways[which].delivered(sent)

    @rule(which=WHICH, subject=SUBJECTS, symbols=st.lists(st.integers(0, 1), min_size=1, max_size=4))
    def speak(self, which, subject, symbols):
        for symbol in symbols:
            self._deliver(which, self._speak(which, subject, symbol))

    @rule(which=WHICH, subject=SUBJECTS, heard=st.integers(0, 2), marked=st.booleans())
    def crash(self, which, subject, heard, marked):
        """It ends after some of what it wrote has left, and perhaps before that is noted."""
        sent = self._speak(which, subject, 0)[:heard]
        if marked:
            self._deliver(which, sent)
        else:
            self.heard += sent
        self.restart(which)

    @precondition(lambda self: self.said)
    @rule(which=WHICH, data=st.data())
    def replay(self, which, data):
        """A sensor says again what it said, with the time of then, which may be only now by the right clock."""
        subject, symbol, time = data.draw(st.sampled_from(self.said))
        self.clocks[which].now = max(self.clocks[which].now, time)
        self._deliver(which, self._speak(which, subject, symbol, time))

    @rule(which=WHICH)
    def restart(self, which):
        self.ledgers[which].close()
        self.ledgers[which] = self._open(which)
        self.gateways[which] = self._started(which)

    @rule(which=WHICH)
    def reconnect(self, which):
        sent = self.gateways[which].resend()
        assert not (self.paused and sent)
        self._deliver(which, sent)

    @rule(which=WHICH)
    def pause(self, which):
        self.gateways[which].pause()
        self.gateways[which].remember()
        self.paused = True

    @precondition(lambda self: self.paused)
    @rule(which=WHICH)
    def resume(self, which):
        self.gateways[which].resume()
        self.gateways[which].remember()
        self.paused = False

    @rule(seconds=st.sampled_from([0.5, 3.0]))
    def wait(self, seconds):
        for clock in self.clocks:
            clock.now += seconds

    @rule(which=WHICH, seconds=st.sampled_from([3.0, 600.0]))
    def clock_runs_ahead(self, which, seconds):
        self.clocks[which].now += seconds

    @precondition(lambda self: self.clocks[0].now != self.clocks[1].now)
    @rule()
    def clocks_are_set_right(self):
        right = min(clock.now for clock in self.clocks)
        for which in (0, 1):
            self.clocks[which].now = right
            self.restart(which)

    @rule()
    def operator_lifts(self):
        for subject in ("ada", "bob"):
            lift(self.ledgers[1], subject, min(clock.now for clock in self.clocks))

    @invariant()
    def what_was_heard_is_what_was_written_in_order(self):
        if not hasattr(self, "ledgers"):
            return
        for subject in ("ada", "bob"):
            written = [
                Outgoing(entry.subject, entry.session, entry.step, entry.sensor, entry.symbol)
                for entry in self.ledgers[0].entries(subject)
            ]
            first = list(dict.fromkeys(out for out in self.heard if out.subject == subject))
            assert first == list(dict.fromkeys(written))[: len(first)]

    @invariant()
    def the_ledger_is_whole_and_within_the_bound(self):
        if hasattr(self, "ledgers"):
            assert verify(self.ledgers[0], self.runtime).fault is None

    @invariant()
    def no_reading_is_released_twice(self):
        if hasattr(self, "ledgers"):
            for subject in ("ada", "bob"):
                entries = self.ledgers[0].entries(subject)
                times = [entry.measured for entry in entries if entry.symbol is not None]
                assert len(set(times)) == len(times)

    @invariant()
    def a_pause_stays_until_somebody_resumes(self):
        if hasattr(self, "ledgers"):
            assert (EVERYBODY in self.ledgers[0].held([EVERYBODY])) == self.paused

    def _settle(self) -> None:
        """Somebody resumes, and both gateways start once more: then nothing is left that was not heard."""
        self.resume(0)
        for which in (0, 1):
            self.restart(which)
            self.reconnect(which)
        self.what_was_heard_is_what_was_written_in_order()
        assert self.ledgers[0].undelivered().entries == []
        written = {(entry.subject, entry.session, entry.step, entry.sensor) for entry in self.ledgers[0].entries()}
        assert written == {(out.subject, out.session, out.step, out.sensor) for out in self.heard}


QUICK = settings(max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_two_gateways_in_any_order():
    run_state_machine_as_test(Gateways, settings=QUICK)


@pytest.mark.slow
def test_two_gateways_in_any_order_for_long():
    run_state_machine_as_test(Gateways, settings=settings(QUICK, max_examples=120, stateful_step_count=40))
