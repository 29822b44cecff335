"""`reticent fit`."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    """motionsense, dsa, ut-complex, smoking (the paper's), or table (your own)."""
    out: Annotated[Path, arg(aliases=["-o"])]
    """The problem file to write (JSON)."""
    where: Annotated[Where, arg(name="")] = field(default_factory=Where)
    what: Annotated[What, arg(name="")] = field(default_factory=What)
    prior: Annotated[str, arg(metavar="recorded|uniform|FILE")] = "recorded"
    """`recorded`: how long each pair of labels was recorded, every person counted alike. `uniform`: the same for
    every pair that was recorded. Or a JSON file with {secret: {useful value: probability}}."""
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
        from reticent.fit.model import fit_model
        from reticent.fit.prior import RECORDED, UNIFORM, prior_of

        check_seed(self.seed)
        check_writable(self.out)
        check_codes(self.what.codes)
        with stages("reading the recordings") as tell:
            recorded = load(source_of(self.name, self.where))
            for note in recorded.notes:
                console().print(f"- {note}", highlight=False)
            if unknown := sorted(set(self.leave_out) - set(recorded.people)):
                raise InputError(f"--leave-out names {unknown}, but the people are {list(recorded.people)}.")
            read = readings(recorded, reading_of(self.what))
            kept = tuple(i for i, person in enumerate(read.people) if person not in self.leave_out)
            tell(f"fitting {self.what.codes} codes per sensor to {len(kept)} people")
            prior = prior_of(self.prior, read.of(kept))
            model = fit_model(read.of(kept), self.what.codes, self.seed, prior)
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
            print(json.dumps({"problem": str(self.out), "people": people, **_prior(model), **changes, **found}))
            return
        self._print(model, read)

    def _print(self, model: "Model", read: "Readings") -> None:
        assert model.fitted is not None
        found, sizes = model.fitted["tempering"], map(len, model.fitted["codebook"]["centres"])
        few = {sensor: size for sensor, size in zip(model.sensors, sizes, strict=True) if size < self.what.codes}
        if few:
            listed = ", ".join(f"{sensor} {size}" for sensor, size in few.items())
            print(f"Sensors with fewer different readings than {self.what.codes} have one code for each: {listed}.")
        how = {"recorded": "as recorded, every person alike", "uniform": "uniform over what was recorded"}
        prior = ", ".join(f"{s} and {u} {p:.3g}" for s, row in _prior(model)["prior"].items() for u, p in row.items())
        print(f"Prior ({how.get(self.prior, f'from {self.prior}')}): {prior}.")
        if read.changes is not None:
            print(read.changes.sentence())
        clip = "" if found["clip"] is None else f", clipped at {found['clip']:g} nat a reading"
        print(f"Likelihoods to the power {found['power']:g}{clip}: the lowest loss on people left out, one by one.")
        print(
            f"Loss {found['plain_loss']:.3f} -> {found['loss']:.3f} nats; calibration error of the confidence in the "
            f"secret {found['plain_calibration_error']:.3f} -> {found['calibration_error']:.3f} (estimates)."
        )
        print(
            f"Saved {self.out}. Next: reticent train {self.out} --confidence L --enforce coarsen -o policy.safetensors"
        )
        print(f"L must lie above {model.largest_secret_prior:.3g}, the largest prior probability of a secret.")


def _prior(model: "Model") -> dict[str, dict[str, dict[str, float]]]:
    rows = zip(model.secrets, model.prior.tolist(), strict=True)
    return {"prior": {secret: dict(zip(model.useful, row, strict=True)) for secret, row in rows}}
