"""Cells of recordings: the paper's policies on learned beliefs, and the guarantee with a finite model beside them.

Everything is learned anew for each rotation of people, which is the seed of its cells.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import polars as pl

from reticent.audit.play import play, play_readings
from reticent.audit.provider import examples_of, final_beliefs
from reticent.belief.information import entropy_bits
from reticent.data.episodes import episodes_of
from reticent.data.load import Source, load
from reticent.data.portions import rotations
from reticent.data.readings import ReadingKind, Readings, readings, uniform_prior
from reticent.errors import InputError
from reticent.problem.bound import Bound
from reticent.problem.codebook import Codebook
from reticent.problem.enforcement import PaperCost, default_enforcement
from reticent.problem.objective import Objective
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.source import FromCodes
from reticent.solve.actor_critic import Progress
from reticent.study.cell import Cell, Efforts, Problem, Row, Setting
from reticent.study.learned import Conditions, Learned, learn
from reticent.study.measured import numbers_of, over_people, silence
from reticent.study.run import PROGRESS
from reticent.study.saved import Store

FITTING_TRACES_SEED, EVALUATION_SEED = 30_000, 20_000
# How many readings the paper's belief sees.
LOOK_BACKS = 2
COUNTS = pl.List(pl.List(pl.List(pl.Int64)))


@dataclass(frozen=True)
class Recordings(Problem):
    """Recordings by name, what a reading of them is, and how the belief is learned.

    `digest` is that of the readings themselves and the conditions, wherever the files lie. There are as many `seeds` as
    it takes until everybody was measured.
    """

    name: str
    digest: str
    seeds: int
    source: Source
    reading: ReadingKind
    conditions: Conditions
    printed: bool = False

    @classmethod
    def of(cls, source: Source, reading: ReadingKind, conditions: Conditions, printed: bool = False) -> "Recordings":
        """The recordings, read; `printed` if a reading, and what the belief sees, are those of the paper."""
        recorded = recorded_readings(source, reading)
        content = json.dumps([fingerprint(recorded), asdict(reading), asdict(conditions), printed], sort_keys=True)
        name = f"{source.name}, as printed" if printed else source.name
        return cls(name, _short_hash(content), rotations(recorded), source, reading, conditions, printed)

    def as_printed(self) -> "Recordings":
        """With single samples as readings, and a belief that sees the last two of them."""
        conditions = replace(self.conditions, look_back=LOOK_BACKS)
        return Recordings.of(self.source, ReadingKind("sample"), conditions, printed=True)

    @property
    def recorded(self) -> Readings:
        """The readings; loaded once per process."""
        return recorded_readings(self.source, self.reading)

    def check(self, setting: Setting) -> None:
        if not setting.method.recorded:
            raise InputError(f"The method {setting.method.name!r} is not for recordings.")
        if setting.enforcement.replaces or setting.method.coded:
            setting.bound.check(uniform_prior(self.recorded))
        elif not setting.bound.pathwise:
            raise InputError(
                f"On recordings a bound on {setting.bound.name} cannot be kept: give confidence or information."
            )
        elif setting.enforcement.name not in (kept := _sent_as_they_are(setting.bound)):
            raise InputError(
                f"On recordings a bound on {setting.bound.name} is not kept by {setting.enforcement.name}, but by "
                f"{' or '.join(kept)}, or by what sends something in place of readings."
            )

    def cell(self, setting: Setting, seed: int, efforts: Efforts) -> Cell:
        steps = setting.method.steps_on_recordings(efforts.steps)
        return RecordedCell(self, setting, seed, steps, efforts.episodes)

    def summaries(self, setting: Setting, cells: Sequence[Cell]) -> list[Cell]:
        return [PeopleCell(self, setting, tuple(cells))]

    def about(self) -> Row:
        secret = uniform_prior(self.recorded).sum(1)
        return {
            "notes": list(self.recorded.notes),
            "people": len(self.recorded.people),
            "entropy": float(entropy_bits(jnp.asarray(secret))),
            "readings": self.conditions.readings,
            "time_cost": self.conditions.time_cost,
        }

    def identity(self) -> Row:
        """The columns of a row that say what it is about."""
        reading = "one sample" if self.reading.kind == "sample" else f"{self.reading.seconds:g} s, summed up"
        back = self.conditions.look_back
        seen = {"reading": reading, "belief_sees": "all readings" if back is None else f"the last {back}"}
        return {"problem": self.name, "digest": self.digest, "as_printed": self.printed, **seen}


@cache
def recorded_readings(source: Source, reading: ReadingKind) -> Readings:
    """The readings; loaded once per process."""
    return readings(load(source), reading)


def fingerprint(recorded: Readings) -> str:
    """The same for the same readings of the same people with the same labels."""
    mark = hashlib.sha256(repr((recorded.people, recorded.sensors, recorded.secrets, recorded.useful_values)).encode())
    for array in (recorded.values, recorded.stream, recorded.person, recorded.secret, recorded.useful):
        mark.update(np.ascontiguousarray(array).tobytes())
    return mark.hexdigest()[:16]


@dataclass(frozen=True)
class LearnCell(Cell):
    """All that one rotation learns before any policy: saved in the study's folder for its other cells."""

    table: ClassVar[str] = "learned"
    of: Recordings
    seed: int

    def identity(self) -> Row:
        return {**self.of.identity(), "method": "learning", "seed": self.seed}

    def folder(self, out: Path) -> Path:
        """Where the networks and the finite model are."""
        return out / self.table / f"{self.of.digest[:8]}-rotation-{self.seed}"

    def run(self, out: Path) -> Row:
        """Learn and save."""
        started = time.perf_counter()
        learned = learn(self.of.recorded, self.of.conditions, self.seed)
        learned.save(self.folder(out))
        names = self.of.recorded.people
        people = {f"people_{of}": [names[i] for i in some] for of, some in asdict(learned.portions).items()}
        tempering = learned.model.fitted["tempering"]  # pyright: ignore[reportOptionalSubscript]
        errors = {name: float(tempering[name]) for name in ("calibration_error", "plain_calibration_error")}
        return {"make_seconds": time.perf_counter() - started, "evaluate_seconds": 0.0, **people, **errors}


@dataclass(frozen=True)
class RecordedCell(Cell):
    """One policy under one bound, in one rotation of people, trained in `steps` environment steps."""

    schema: ClassVar[dict[str, Any]] = {
        "limit": pl.Float64,
        "recipe": pl.String,
        "variant": pl.String,
        "people_useful": COUNTS,
        "people_secret": COUNTS,
    }
    of: Recordings
    setting: Setting
    seed: int
    steps: int
    episodes: int

    @property
    def needs(self) -> tuple[LearnCell, ...]:
        return (LearnCell(self.of, self.seed),)

    def identity(self) -> Row:
        efforts = {"seed": self.seed, "effort": self.steps, "episodes": self.episodes}
        return {**self.of.identity(), **self.setting.columns(), **efforts}

    def run(self, out: Path) -> Row:
        """Train and measure."""
        started = time.perf_counter()
        [learning] = self.needs
        learned = Learned.load(learning.folder(out), self.of.recorded, self.seed)
        coded = self.setting.enforcement.replaces or self.setting.method.coded
        numbers = self._coded(learned) if coded else self._raw(learned)
        seconds = {"make_seconds": time.perf_counter() - started, "evaluate_seconds": 0.0}
        return {**self.setting.promise(), **seconds, **numbers}

    @property
    def objective(self) -> Objective:
        """The prices of this cell."""
        return Objective(self.of.conditions.time_cost, self.setting.error_penalty)

    def _raw(self, learned: Learned) -> Row:
        """Readings as they are, judged by the adversary of random traces, and by retrained attackers."""
        prior = np.asarray(learned.provider.prior)
        if _crossed_by(self.setting.bound, prior):
            # Nothing may be said, and nobody has to learn that.
            return {**silence(prior, self.setting.error_penalty), "variant": None}
        who = learned.portions
        policy = self._policy(self._replayed(learned, who.policy))
        (_, seen), (records, measured) = (
            play_readings(self._replayed(learned, people), policy, self.episodes, seed, learned.of(people))
            for people, seed in ((who.adversary, FITTING_TRACES_SEED), (who.measured, EVALUATION_SEED))
        )
        beliefs = np.asarray(final_beliefs(learned.adversary, examples_of(measured)))
        named = {"useful": beliefs.sum(1).argmax(1), "secret": beliefs.sum(2).argmax(1)}
        return {**numbers_of(records, measured, named, seen), "variant": None}

    def _replayed(self, learned: Learned, people: tuple[int, ...]) -> Process:
        """Readings of some people, to a provider with a learned belief."""
        own, setting, length = learned.of(people), self.setting, self.of.conditions.readings
        return Process.over(learned.provider, own, setting.bound, self.objective, length, setting.enforcement)

    def _coded(self, learned: Learned) -> Row:
        """With the fitted model; codes leave the device, or merged symbols, or what a mechanism makes of codes."""
        setting, who, length = self.setting, learned.portions, self.of.conditions.readings
        task = Task(learned.model, setting.bound, self.objective, setting.enforcement, length)
        mechanism, codebook = setting.method.mechanism(task, self.seed), Codebook.of(learned.model)
        task = task if mechanism is None else replace(task, model=mechanism.model(task.model))
        process = Process.of(task)
        policy = self._policy(process)
        traces = []
        for people, seed in ((who.adversary, FITTING_TRACES_SEED), (who.measured, EVALUATION_SEED)):
            own = self.of.recorded.of(people)
            said = codebook.codes(own.values)
            said = said if mechanism is None else mechanism.send(said, seed)
            codes = FromCodes(jnp.asarray(said), episodes_of(own, length))
            traces.append(play(task, process.reading_from(codes), policy, self.episodes, seed, own))
        (_, seen), (records, measured) = traces
        return {**numbers_of(records, measured, None, seen), "variant": mechanism and mechanism.variant}

    def _policy(self, process: Process) -> Any:
        def tell(done: int, progress: Progress) -> None:
            PROGRESS.info("agent %d: step %d, cost %.2f", self.seed, done, progress.cost_per_episode)

        return self.setting.method.on_recordings(process, self.seed, self.steps, tell)


@dataclass(frozen=True)
class PeopleCell(Cell):
    """Intervals over all people whom the rotations of a setting have measured."""

    table: ClassVar[str] = "people"
    schema: ClassVar[dict[str, Any]] = {"limit": pl.Float64, "recipe": pl.String}
    of: Recordings
    setting: Setting
    rotations: tuple[Cell, ...]

    @property
    def needs(self) -> tuple[Cell, ...]:
        return self.rotations

    def identity(self) -> Row:
        measured = _short_hash(json.dumps([cell.identity() for cell in self.rotations]))
        return {**self.of.identity(), **self.setting.columns(), "measured": measured}

    def run(self, out: Path) -> Row:
        """Draw people with replacement."""
        started, store = time.perf_counter(), Store(out)
        rows = [row for need in self.needs if (row := store.row(need)) is not None]
        found = over_people(rows)
        return {"make_seconds": time.perf_counter() - started, "evaluate_seconds": 0.0, **found}


def _sent_as_they_are(bound: Bound) -> tuple[str, ...]:
    """How a bound is kept where readings are sent as they are, by a belief that knows no law of the next one."""
    return default_enforcement(bound).name, PaperCost.name


def _short_hash(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _crossed_by(bound: Bound, prior: np.ndarray) -> bool:
    """Whether the prior alone reaches the bound."""
    try:
        bound.check(prior)
    except InputError:
        return True
    return False
