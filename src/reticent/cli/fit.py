"""`reticent fit`."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from reticent.cli.data import RecordingsName, What, Where, reading_of, source_of
from reticent.cli.options import check_seed, check_writable
from reticent.cli.terminal import console
from reticent.errors import InputError


@dataclass(frozen=True)
class Fit:
    """Make a problem file from recordings: a finite model, so that exact beliefs, guarantee and certificates apply."""

    name: Annotated[Positional[RecordingsName], arg(metavar="NAME")]
    """motionsense, dsa, ut-complex, smoking (the paper's), or table (your own)."""
    out: Annotated[Path, arg(aliases=["-o"])]
    """The problem file to write (JSON)."""
    where: Annotated[Where, arg(name="")] = field(default_factory=Where)
    what: Annotated[What, arg(name="")] = field(default_factory=What)
    codes: int = 30
    """Codes per sensor: each reading becomes the nearest of so many typical ones."""
    leave_out: tuple[str, ...] = ()
    """People not to learn from, so that the model can be tried on them."""
    seed: int = 0
    """Seed of the codebook and of the releases that judge the fit."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Load, fit, write, and say how honest the beliefs are on people who were left out."""
        from reticent.data.load import load
        from reticent.data.readings import readings
        from reticent.problem.fit import fit_model

        check_seed(self.seed)
        check_writable(self.out)
        if not 2 <= self.codes <= 1000:
            raise InputError(f"--codes must lie between 2 and 1000, but is {self.codes}.")
        with console().status("Reading the recordings ...") as status:
            recorded = load(source_of(self.name, self.where))
            for note in recorded.notes:
                console().print(f"- {note}", highlight=False)
            if unknown := sorted(set(self.leave_out) - set(recorded.people)):
                raise InputError(f"--leave-out names {unknown}, but the people are {list(recorded.people)}.")
            read = readings(recorded, reading_of(self.what))
            kept = tuple(i for i, person in enumerate(read.people) if person not in self.leave_out)
            status.update(f"Fitting {self.codes} codes per sensor to {len(kept)} people ...")
            model = fit_model(read.of(kept), self.codes, self.seed)
            assert model.fitted is not None
            # So that an audit finds the same recordings; where they lie is said then.
            chosen = {name: getattr(self.where, name) for name in ("secret", "unit", "place")}
            model.fitted["recordings"] = {"name": self.name, **chosen}
        self.out.write_text(json.dumps(model.to_json()))
        found = model.fitted["flattening"]
        if self.json:
            print(json.dumps({"problem": str(self.out), "people": [read.people[i] for i in kept], **found}))
            return
        clip = "" if found["clip"] is None else f", clipped at {found['clip']:g} nat a reading"
        print(f"Likelihoods to the power {found['power']:g}{clip}: the lowest loss on people left out, one by one.")
        print(
            f"Loss {found['plain_loss']:.3f} -> {found['loss']:.3f} nats; calibration error of the confidence in the "
            f"secret {found['plain_calibration_error']:.3f} -> {found['calibration_error']:.3f} (estimates)."
        )
        print(
            f"Saved {self.out}. Next: reticent train {self.out} --confidence L --enforce coarsen -o policy.safetensors"
        )
