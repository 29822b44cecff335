"""Small policies that need no training, a clock that is set by hand, and a ledger that can be made to fail."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reticent.gateway.decisions import Standing
from reticent.gateway.entry import Entry
from reticent.gateway.ledger import LedgerTrouble
from reticent.gateway.messages import Message, Outgoing
from reticent.gateway.runtime import Runtime
from reticent.gateway.service import Gateway
from reticent.gateway.settings import Settings
from reticent.gateway.sqlite import SqliteLedger
from reticent.gateway.standing import standing_of
from reticent.policy.store import PolicyFile
from reticent.problem.bound import Bound, Confidence, Information
from reticent.problem.enforcement import named_enforcement
from reticent.problem.model import Model
from reticent.problem.synthetic import synthetic
from reticent.problem.task import Task

NOON = 1_700_000_000.0


def task(
    bound: Bound | None = None,
    enforce: str = "mask",
    horizon: int = 4,
    model: Model | None = None,
) -> Task:
    """The synthetic problem, unless told otherwise, under the bound that is quickest to keep."""
    return Task(
        model or synthetic(), bound or Information(1.4), enforcement=named_enforcement(enforce), horizon=horizon
    )


def coarsened(horizon: int = 4) -> Task:
    return task(Confidence(0.8), "coarsen", horizon)


def write_policy(path: Path, what: Task | None = None, seed: int = 0, stops: float = -9.0, greedy: bool = True) -> Path:
    """An actor that nobody trained: it asks sensors in some order, and with `stops` below zero until the horizon."""
    what = what or task()
    rng = np.random.default_rng(seed)
    cells, actions, width = what.model.prior.size, len(what.model.sensors) + 1, 8
    sizes = [(width, cells), (width, width), (actions, width)]
    arrays = {f"layers.{i}.weight": rng.normal(size=size).astype(np.float32) for i, size in enumerate(sizes)}
    arrays |= {f"layers.{i}.bias": np.zeros(size[0], np.float32) for i, size in enumerate(sizes)}
    arrays["layers.2.bias"][-1] = stops
    PolicyFile("actor", what, {"inputs": "belief", "width": width, "greedy": greedy}, arrays, {}).save(path)
    return path


def follow(runtime: Runtime, standing: Standing, entry: Entry) -> Standing:
    """What the provider knows once it has heard what this entry says, where readings are sent as they are or not."""
    sensor, symbol = runtime.sensors.index(entry.sensor), runtime.symbols.index(str(entry.symbol))
    chances = None if entry.chances is None else np.array(entry.chances)
    belief = runtime.heard(standing, sensor, symbol, chances)
    bits = runtime.decided(runtime.public(standing), sensor).bits
    return Standing(belief, standing.spent_bits + bits, standing.session, standing.step + 1)


class Clock:
    """Time stands still until it is set."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Fragile(SqliteLedger):
    """A ledger that fails on demand, before or after what was given to it is on disk."""

    fails: str | None = None

    def reopen(self) -> None:
        """Open the file that has its path now, unnoticed by the gateway: as a database server that is restored."""
        self.__init__(self._path)

    def append(self, entries: Sequence[Entry]) -> list[bool]:
        if self.fails == "before":
            raise LedgerTrouble("The disk is full. Make room.")
        kept = super().append(entries)
        if self.fails == "after":
            raise LedgerTrouble("The connection broke. Mend it.")
        return kept

    def last(self, subject: str) -> Entry | None:
        if self.fails == "reading":
            raise LedgerTrouble("The disk is gone. Plug it in.")
        return super().last(subject)


class Place:
    """A gateway in a folder, with its parts in reach; `again` starts it anew on the same ledger, as after a crash."""

    def __init__(self, folder: Path, what: Task | None = None, stops: float = -9.0, **settings) -> None:
        self.policy = write_policy(folder / "policy.safetensors", what, stops=stops)
        self.where = folder / "ledger.db"
        self.clock, self.settings = Clock(), {"rest": 60.0, **settings}
        self.runtime = Runtime.load(self.policy)
        self.ledger: Fragile
        self.gateway: Gateway
        self.draws = np.random.default_rng(1)
        self.start()

    def start(self, **settings) -> None:
        self.ledger = Fragile(self.where)
        chosen = Settings(self.policy, **{**self.settings, **settings})
        self.gateway = Gateway(self.runtime, self.ledger, chosen, self.clock, lambda: self.draws)

    def again(self, **settings) -> None:
        self.ledger.close()
        self.start(**settings)

    def asked(self, subject: str = "ada") -> str:
        """The sensor that the gateway waits for, or will once the subject has rested."""
        for line in self.gateway.snapshot()["subjects"]:
            if line["name"] == subject and line["state"].startswith("waits for "):
                return line["state"].removeprefix("waits for ")
        last = self.ledger.last(subject)
        standing = self.runtime.first() if last is None else standing_of(last)
        if last is not None and last.symbol is None:
            standing = self.runtime.next_session(standing)
        sensor = self.runtime.decide(standing, self.draws).sensor
        return self.runtime.sensors[0 if sensor is None else sensor]

    def message(self, subject: str = "ada", code: int | None = None, **changes) -> Message:
        """What the asked sensor says now."""
        code = int(self.draws.integers(15, 35)) if code is None else code
        symbol = self.runtime.task.model.symbols[code]
        fields = {"sensor": self.asked(subject), "time": self.clock.now, "symbol": symbol}
        return Message(subject, **{**fields, **changes})

    def tick(self, subject: str = "ada", seconds: float = 1.0, reading: int | None = None) -> list[Outgoing]:
        """Some seconds later the asked sensor speaks; what is released is delivered."""
        self.clock.now += seconds
        sent = self.gateway.handle([self.message(subject, reading)])
        self.gateway.delivered(sent)
        return sent
