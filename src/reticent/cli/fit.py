"""`reticent fit`."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from reticent.cli.data import RecordingsName, What, Where, check_codes, reading_of, source_of
from reticent.cli.options import check_seed, check_writable
from reticent.cli.terminal import console, stages
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.data.readings import Readings
    from reticent.problem.model import Model


@dataclass(frozen=True)
class Fit:
    """Make a problem file from recordings: a finite model, to which exact beliefs, guarantee and certificates apply."""

    name: Annotated[Positional[RecordingsName], arg(metavar="NAME")]
    """motionsense, dsa, ut-complex, extrasensory, smoking (the paper's), or table (your own)."""
    out: Annotated[Path, arg(aliases=["-o"])]
    """The problem file to write (JSON)."""
    where: Annotated[Where, arg(name="")] = field(default_factory=Where)
    what: Annotated[What, arg(name="")] = field(default_factory=What)
    prior: Annotated[str, arg(metavar="recorded|uniform|FILE")] = "recorded"
    """`recorded`: how long each pair of labels was recorded, every person counted alike. `uniform`: the same for
    every pair that was recorded. Or a JSON file with {secret: {useful value: probability}}."""
    static: bool = False
    """Take secret and useful value to stay the same during an episode, also where labels change. By default the model
    then says how they move from step to step."""
    step: float | None = None
    """Seconds of a step of a pair that moves; by default as long as a reading."""
    panel: Literal["people", "clusters", "bootstrap"] | None = None
    """Further providers for whom a bound is to hold: who knows the readings of one of these people only, of one group
    of people who are alike, or of people drawn anew from them (with replacement)."""
    sharpen: float = 1.0
    """How many times as much as in the model a reading counts for the providers of the panel."""
    leave_out: tuple[str, ...] = ()
    """People to leave out of the fit, so that the model can be tested on them."""
    seed: int = 0
    """Seed of the codebook and of the simulated releases that the fit is judged on."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Load, fit, write, and print how well calibrated the beliefs are on people who were left out."""
        from reticent.data.load import load
        from reticent.data.readings import readings
        from reticent.fit.model import fit_coded
        from reticent.fit.panel import fit_panel
        from reticent.fit.prior import RECORDED, UNIFORM, prior_of

        check_seed(self.seed)
        check_writable(self.out)
        check_codes(self.what.codes)
        if self.static and self.step is not None:
            raise InputError("--step is of a pair that moves, and with --static it stays: leave one of them out.")
        if self.panel is None and self.sharpen != 1:
            raise InputError("--sharpen is of the providers of a panel, and there is none: give --panel, too.")
        with stages("reading the recordings") as tell:
            recorded = load(source_of(self.name, self.where))
            for note in recorded.notes:
                console().print(f"- {note}", highlight=False)
            if unknown := sorted(set(self.leave_out) - set(recorded.people)):
                raise InputError(f"--leave-out names {unknown}, but the people are {list(recorded.people)}.")
            read = readings(recorded, reading_of(self.what, recorded.interval))
            kept = tuple(i for i, person in enumerate(read.people) if person not in self.leave_out)
            tell(f"fitting {self.what.codes} codes per sensor to {len(kept)} people")
            prior = prior_of(self.prior, read.of(kept))
            model, coded = fit_coded(read.of(kept), self.what.codes, self.seed, prior, self.static, self.step)
            if self.panel is not None:
                model = fit_panel(model, read.of(kept), coded, self.panel, self.sharpen, self.seed)
            assert model.fitted is not None
            # So that an audit finds the same recordings; their folder is given then.
            chosen = {name: getattr(self.where, name) for name in ("secret", "unit", "place")}
            model.fitted["recordings"] = {"name": self.name, **chosen}
            model.fitted["prior"] = self.prior if self.prior in (RECORDED, UNIFORM) else "file"
        self.out.write_text(json.dumps(model.to_json()))
        found = model.fitted["tempering"]
        if self.json:
            people = [read.people[i] for i in kept]
            changes = {} if read.changes is None else read.changes.stored()
            moves = {} if model.transition is None else {"step": model.fitted["step"], **_transition(model)}
            panel = {"panel": len(model.panel)} if model.panel else {}
            print(
                json.dumps(
                    {"problem": str(self.out), "people": people, **_prior(model), **changes, **moves, **found, **panel}
                )
            )
            return
        self._print(model, read)

    def _print(self, model: "Model", read: "Readings") -> None:
        assert model.fitted is not None
        found, sizes = model.fitted["tempering"], map(len, model.fitted["codebook"]["centres"])
        most = self.what.codes
        if most == "learned":
            most = max(map(len, model.fitted["codebook"]["centres"]))
            print(f"Codes learned per sensor: {most}, of which beliefs had the lowest loss on people left out.")
        few = {sensor: size for sensor, size in zip(model.sensors, sizes, strict=True) if size < most}
        if few:
            listed = ", ".join(f"{sensor} {size}" for sensor, size in few.items())
            print(f"Sensors with fewer different readings than {most} have one code for each: {listed}.")
        how = {"recorded": "as recorded, every person alike", "uniform": "uniform over what was recorded"}
        prior = ", ".join(f"{s} and {u} {p:.3g}" for s, row in _prior(model)["prior"].items() for u, p in row.items())
        print(f"Prior ({how.get(self.prior, f'from {self.prior}')}): {prior}.")
        if model.transition is not None:
            print(_stays(model))
        elif read.changes is not None:
            print(read.changes.sentence())
        clip = "" if found["clip"] is None else f", clipped at {found['clip']:g} nat a reading"
        own = found["secret_power"]
        part = "" if own is None else f", and {own:g} of what tells the secret beside the useful value"
        print(
            f"Likelihoods to the power {found['power']:g}{clip}{part}: the lowest loss on people left out one by one."
        )
        print(
            f"Loss {found['plain_loss']:.3f} -> {found['loss']:.3f} nats; calibration error of the confidence in the "
            f"secret {found['plain_calibration_error']:.3f} -> {found['calibration_error']:.3f} (estimates)."
        )
        if model.panel:
            print(
                f"Panel ({self.panel}): {len(model.panel)} further providers, for whom a reading counts "
                f"{self.sharpen:g} times as much. A bound that is never crossed is kept for them and their mixtures."
            )
        next_step = f"Next: reticent train {self.out} --confidence L --enforce coarsen -o policy.safetensors"
        print(f"Saved {self.out}. {next_step if model.transition is None else 'Next: `reticent docs moving`.'}")
        print(f"L must lie above {model.largest_secret_prior:.3g}, the largest prior probability of a secret.")


def _prior(model: "Model") -> dict[str, dict[str, dict[str, float]]]:
    return {"prior": _named(model, model.prior.tolist())}


def _named(model: "Model", table: list[list[float]]) -> dict[str, dict[str, float]]:
    """A table [secret][useful] by names."""
    rows = zip(model.secrets, table, strict=True)
    return {secret: dict(zip(model.useful, row, strict=True)) for secret, row in rows}


def _transition(model: "Model") -> dict[str, Any]:
    """T(s', u' | s, u), by names."""
    assert model.transition is not None
    rows = zip(model.secrets, model.transition.tolist(), strict=True)
    moves = {s: {u: _named(model, to) for u, to in zip(model.useful, row, strict=True)} for s, row in rows}
    return {"transition": moves}


def _stays(model: "Model") -> str:
    """How long each value lasts under the fitted transition."""
    from reticent.data.changes import duration
    from reticent.fit.transition import MOVED, STAYED, mean_stays

    assert model.transition is not None
    assert model.fitted is not None
    step, values = model.fitted["step"], (*model.secrets, *model.useful)
    steps = (each for stays in mean_stays(model.transition, model.prior) for each in stays)
    lasting = ", ".join(f"{value} {duration(step * each)}" for value, each in zip(values, steps, strict=True))
    return (
        f"Transition per step of {step:.3g} s, every person counted alike, smoothed by {STAYED:g} steps of staying and "
        f"{MOVED:g} moves from each pair. Mean stays: {lasting}."
    )
