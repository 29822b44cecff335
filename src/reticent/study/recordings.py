"""The paper's study on recordings: belief-PDRP, MI-PDRP and no protection, with the guarantee beside them.

Everything is learned anew for each rotation of people. The belief is learned from one portion of them, policies are
trained on another, the adversary on a third, and all numbers are of a fourth that nobody has learned from.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from reticent.audit.play import play, play_readings
from reticent.audit.provider import examples_of, final_beliefs
from reticent.belief.generator import Generator
from reticent.belief.information import entropy_bits
from reticent.belief.learn import DEFAULT, Settings, Stretches, learn_belief, learn_generator, stretches
from reticent.belief.lstm import LstmFilter
from reticent.belief.store import load_provider, save_provider
from reticent.data.episodes import episodes_of
from reticent.data.load import Source, load
from reticent.data.portions import Portions, portions, rotations
from reticent.data.readings import ReadingKind, Readings, readings, uniform_prior
from reticent.policy.heuristics import OneStepLookahead
from reticent.policy.policy import NoProtection, Policy
from reticent.problem.bound import Bound, Confidence, Information, Unbounded
from reticent.problem.enforcement import Coarsen
from reticent.problem.fit import CODES, Codebook, fit_model
from reticent.problem.model import ReleaseModel, read_problem
from reticent.problem.objective import Objective
from reticent.problem.task import Task
from reticent.process.process import Process
from reticent.process.source import FromCodes
from reticent.solve.a2c import Progress, Recipe, train
from reticent.study.measured import numbers_of, over_people, silence
from reticent.study.run import PROGRESS, run_cells, write_results
from reticent.types import PRNGKey

BELIEF, INFORMATION, NO_PROTECTION, GUARANTEE = "belief-PDRP", "MI-PDRP", "no protection", "guarantee"
RECIPE = Recipe(inputs="described", environments=128)
FITTING_TRACES_SEED, EVALUATION_SEED = 30_000, 20_000


@dataclass(frozen=True)
class Setting:
    """How much of it: `steps` train each policy, `episodes` are played to fit the attackers and as many to measure."""

    steps: int = 200_000
    episodes: int = 8_192
    readings: int = 10
    look_back: int | None = None
    # Codes per sensor of the finite model, at most.
    codes: int = CODES
    confidence: tuple[float, ...] = (0.5, 0.65, 0.8, 0.95)
    information: tuple[float, ...] = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
    guarantee: tuple[float, ...] = (0.52, 0.55, 0.65, 0.8, 0.95)
    # The paper's prices.
    objective: Objective = field(default_factory=lambda: Objective(time_cost=0.5))
    learning: Settings = DEFAULT


QUICK = Setting(steps=60_000, episodes=2_048, confidence=(0.65, 0.95), information=(0.5, 1.25), guarantee=(0.52, 0.65))


@dataclass(frozen=True, eq=False)
class Learned:
    """What one rotation of people has taught."""

    rotation: int
    portions: Portions
    readings: Readings
    provider: LstmFilter
    adversary: LstmFilter
    model: ReleaseModel

    def of(self, people: tuple[int, ...]) -> Readings:
        """Standardised readings of some people."""
        return self.readings.of(people)


@dataclass(frozen=True)
class Rotation:
    """Which recordings, what a reading of them is, and whose turn it is to be measured.

    `fingerprint` is that of the readings themselves: other data in the same place are other cells.
    """

    source: Source
    fingerprint: str
    reading: ReadingKind
    setting: Setting
    rotation: int


@dataclass(frozen=True)
class LearnCell:
    """All that one rotation learns before any policy: saved in the study's folder for its other cells."""

    of: Rotation

    @property
    def name(self) -> str:
        """A file name that tells cells apart."""
        return f"learned_rotation-{self.of.rotation}"

    @property
    def title(self) -> str:
        """The cell in words."""
        return f"belief, generator, adversary and finite model, rotation {self.of.rotation}"

    def identity(self) -> dict[str, Any]:
        """What a saved row must say to be that of this cell."""
        return asdict(self)

    def run(self, out: Path) -> dict[str, Any]:
        """Learn and save."""
        recorded = recorded_readings(self.of.source, self.of.reading)
        learned = learn(recorded, self.of.setting, self.of.rotation)
        folder = _folder(out, self.of.rotation)
        folder.mkdir(parents=True, exist_ok=True)
        save_provider(folder / "provider.safetensors", learned.provider)
        save_provider(folder / "adversary.safetensors", learned.adversary)
        (folder / "model.json").write_text(json.dumps(learned.model.to_json()))
        fitted = learned.model.fitted
        assert fitted is not None
        return {"people": _people(recorded, learned.portions), "flattening": fitted["flattening"]}


@dataclass(frozen=True)
class PolicyCell:
    """One policy under one bound, in one rotation."""

    of: Rotation
    policy: str
    limit: float

    @property
    def name(self) -> str:
        """A file name that tells cells apart."""
        return f"{self.policy.replace(' ', '-')}_{self.limit:g}_rotation-{self.of.rotation}"

    @property
    def title(self) -> str:
        """The cell in words."""
        unit = " bits" if self.policy == INFORMATION else ""
        bound = "" if self.policy == NO_PROTECTION else f" {self.limit:g}{unit}"
        return f"{self.policy}{bound}, rotation {self.of.rotation}"

    def identity(self) -> dict[str, Any]:
        """What a saved row must say to be that of this cell."""
        return asdict(self)

    def run(self, out: Path) -> dict[str, Any]:
        """Train and measure."""
        setting, started = self.of.setting, time.perf_counter()
        recorded = recorded_readings(self.of.source, self.of.reading)
        folder = _folder(out, self.of.rotation)
        who = portions(recorded, self.of.rotation)
        learned = Learned(
            self.of.rotation,
            who,
            standardised(recorded, who.predictor),
            load_provider(folder / "provider.safetensors"),
            load_provider(folder / "adversary.safetensors"),
            read_problem(folder / "model.json"),
        )
        by_secret = np.asarray(learned.provider.prior).sum(1)
        match self.policy:
            case "no protection":
                # Random sensors, as many readings as there may be.
                numbers = _with_readings(learned, setting, Unbounded(), NoProtection())
            case "belief-PDRP":
                # The prior alone may reach the bound: then nothing may be said, and nobody has to learn that.
                possible = self.limit > by_secret.max()
                numbers = (
                    _agent(learned, setting, Confidence(self.limit))
                    if possible
                    else silence(np.asarray(learned.provider.prior), setting.objective.error_penalty)
                )
            case "MI-PDRP":
                # The sum along a path can exceed what there is to know, so larger limits bind too.
                numbers = _agent(learned, setting, Information(self.limit))
            case _:
                numbers = _guaranteed(learned, recorded, setting, Confidence(self.limit))
        return {"seconds": time.perf_counter() - started, "evaluation": numbers}


def plan(
    source: Source, reading: ReadingKind, setting: Setting, turns: int
) -> tuple[list[LearnCell], list[PolicyCell]]:
    """What to learn first, then every policy and bound, for each rotation."""
    recorded = recorded_readings(source, reading)
    prior = uniform_prior(recorded).sum(1)
    policies = [(NO_PROTECTION, 0.0), *((BELIEF, limit) for limit in setting.confidence)]
    policies += [(INFORMATION, limit) for limit in setting.information]
    policies += [(GUARANTEE, limit) for limit in setting.guarantee if limit > prior.max()]
    mark = fingerprint(recorded)
    rotated = [Rotation(source, mark, reading, setting, turn) for turn in range(turns)]
    return [LearnCell(of) for of in rotated], [PolicyCell(of, *which) for of in rotated for which in policies]


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


def _folder(out: Path, rotation: int) -> Path:
    return out / "learned" / f"rotation-{rotation}"


def _people(recorded: Readings, who: Portions) -> dict[str, list[str]]:
    return {portion: [recorded.people[i] for i in people] for portion, people in asdict(who).items()}


def standardised(recorded: Readings, people: tuple[int, ...]) -> Readings:
    """Readings in units of those of the people that the belief is learned from."""
    base = recorded.of(people).values
    mean, deviation = base.mean(0), np.maximum(base.std(0), 1e-6)
    return replace(recorded, values=((recorded.values - mean) / deviation).astype(np.float32))


def learn(recorded: Readings, setting: Setting, rotation: int) -> Learned:
    """Belief, generator, adversary and finite model of one rotation.

    The policy's people are those on whom the networks' learning is stopped: neither learned from nor measured on.
    """
    who = portions(recorded, rotation)
    scaled = standardised(recorded, who.predictor)
    provider = learn_provider(scaled.of(who.predictor), scaled.of(who.policy), setting, rotation)
    attacked, held_out = (stretches(scaled.of(people), setting.readings) for people in (who.adversary, who.policy))
    fresh = _fresh(attacked, setting, jax.random.fold_in(jax.random.key(rotation), 1))
    adversary = learn_belief(attacked, held_out, fresh, rotation, setting.learning, _telling("adversary", rotation))
    own = recorded.of(who.predictor + who.policy)
    model = fit_model(own, setting.codes, rotation, uniform_prior(own))
    return Learned(rotation, who, scaled, provider, adversary, model)


def learn_provider(own: Readings, held_out: Readings, setting: Setting, seed: int) -> LstmFilter:
    """The belief of somebody who learned from some people, and its law of readings."""
    source, stopping = (stretches(people, setting.readings) for people in (own, held_out))
    key, law_key = jax.random.split(jax.random.key(seed))
    fresh = _fresh(source, setting, key)
    provider = learn_belief(source, stopping, fresh, seed, setting.learning, _telling("belief", seed))
    secrets, useful = source.prior.shape
    generator = Generator(fresh.sensors, secrets, useful, source.readings.shape[2], law_key)
    learned = learn_generator(source, stopping, generator, seed, setting.learning, _telling("generator", seed))
    return provider.with_law(learned.law())


def _fresh(source: Stretches, setting: Setting, key: PRNGKey) -> LstmFilter:
    _, sensors, features = source.readings.shape
    return LstmFilter(source.prior, sensors, features, key, setting.look_back)


def _telling(what: str, rotation: int) -> Callable[[int, float], None]:
    return lambda done, loss: PROGRESS.info("%s %d: update %d, loss %.3f", what, rotation, done, loss)


def replayed(provider: LstmFilter, own: Readings, bound: Bound, setting: Setting) -> Process:
    """Readings of some people, to a provider with a learned belief."""
    return Process.over(provider, own, bound, setting.objective, setting.readings)


def trained_agent(provider: LstmFilter, own: Readings, bound: Bound, setting: Setting, seed: int) -> Policy:
    """A2C on the learned belief, trained on some people."""

    def tell(done: int, progress: Progress) -> None:
        PROGRESS.info("agent %d: step %d, cost %.2f", seed, done, progress.cost_per_episode)

    return train(replayed(provider, own, bound, setting), setting.steps, seed, RECIPE, tell)


def _agent(learned: Learned, setting: Setting, bound: Bound) -> dict[str, Any]:
    policy = trained_agent(learned.provider, learned.of(learned.portions.policy), bound, setting, learned.rotation)
    return _with_readings(learned, setting, bound, policy)


def _with_readings(learned: Learned, setting: Setting, bound: Bound, policy: Policy) -> dict[str, Any]:
    """Measure a policy that releases raw readings: by the adversary of random traces, and by retrained attackers."""
    who = learned.portions
    (_, seen), (records, measured) = (
        play_readings(
            replayed(learned.provider, learned.of(people), bound, setting),
            policy,
            setting.episodes,
            seed,
            learned.of(people),
        )
        for people, seed in ((who.adversary, FITTING_TRACES_SEED), (who.measured, EVALUATION_SEED))
    )
    beliefs = np.asarray(final_beliefs(learned.adversary, examples_of(measured)))
    named = {"useful": beliefs.sum(1).argmax(1), "secret": beliefs.sum(2).argmax(1)}
    return numbers_of(records, measured, named, seen)


def _guaranteed(learned: Learned, recorded: Readings, setting: Setting, bound: Bound) -> dict[str, Any]:
    """Coarsening with the fitted model; what leaves the device are codes and merged symbols."""
    model, who = learned.model, learned.portions
    codebook = Codebook.of(model)
    task = Task(model, bound, setting.objective, Coarsen(), setting.readings)
    process = Process.of(task)
    policy = OneStepLookahead(process, jnp.asarray(1.0))
    traces = []
    for people, seed in ((who.adversary, FITTING_TRACES_SEED), (who.measured, EVALUATION_SEED)):
        own = recorded.of(people)
        codes = FromCodes(jnp.asarray(codebook.codes(own.values)), episodes_of(own, setting.readings))
        traces.append(play(task, process.reading_from(codes), policy, setting.episodes, seed, own))
    (_, seen), (records, measured) = traces
    return numbers_of(records, measured, None, seen)


def study_recordings(
    source: Source,
    reading: ReadingKind,
    setting: Setting,
    turns: int | None,
    out: Path,
    report: Callable[[Any, bool, int], None],
) -> Path:
    """The whole study: results of all cells as `results.parquet` in `out`. `report` is told of each cell, whether it
    was there, and how many there are."""
    recorded = recorded_readings(source, reading)
    turns = turns or rotations(recorded)
    learning, policies = plan(source, reading, setting, turns)
    total = len(learning) + len(policies)
    taught = run_cells(learning, out, lambda cell, was_there: report(cell, was_there, total))
    rows = run_cells(policies, out, lambda cell, was_there: report(cell, was_there, total))
    honest, plain = (
        [row["flattening"][name] for row in taught] for name in ("calibration_error", "plain_calibration_error")
    )
    about = {
        "notes": list(recorded.notes),
        "readings": setting.readings,
        "entropy": float(entropy_bits(jnp.asarray(uniform_prior(recorded).sum(1)))),
        "settings": {
            "people": len(recorded.people),
            "rotations": turns,
            "a reading is": "one sample" if reading.kind == "sample" else f"{reading.seconds:g} s, summed up",
            "environment steps per policy": f"{RECIPE.steps_run(setting.steps):,}",
            "episodes per evaluation": f"{setting.episodes:,}",
            "prices": f"C_T {setting.objective.time_cost:g}, lambda {setting.objective.error_penalty:g}",
            "calibration error of the finite model, on people left out": f"{np.mean(honest):.3f} (plain Bayes "
            f"{np.mean(plain):.3f})",
            "learned belief sees": "all readings" if setting.look_back is None else f"the last {setting.look_back}",
        },
    }
    results = []
    for row in rows:
        found = row["evaluation"]
        key = {"policy": row["policy"], "limit": row["limit"], "rotation": row["of"]["rotation"]}
        same = [each["evaluation"] for each in rows if (each["policy"], each["limit"]) == (row["policy"], row["limit"])]
        shown = {name: value for name, value in found.items() if not name.startswith("people_")}
        results.append({**key, **shown, **over_people(same)})
    return write_results(out, f"The study on {source.name}", results, about)
