"""`reticent calibrate`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from reticent.cli.audit import CHECK_FAILED
from reticent.cli.options import check_seed, check_writable
from reticent.cli.terminal import stages
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.solution.calibrate import Calibrated, Tried


@dataclass(frozen=True)
class Calibrate:
    """Choose the model's bound on recorded people so that a claim about new people can be made, and train its policy.

    The claim: with confidence LEVEL, attackers who learned from other people name the secret of at least SHARE of new
    people right in at most L of the cases. It is tested on people whom the model was not fitted to; with too few of
    them it is refused. Exit code 3: no bound that was tried allows the claim.
    """

    model: Annotated[Positional[Path], arg(metavar="MODEL")]
    """A problem file that `reticent fit` has made, with people left out."""
    data: Path
    """Folder with the recordings that the model was fitted to a part of."""
    confidence: float
    """The limit L: how often the secret of a person may be named right."""
    out: Annotated[Path, arg(aliases=["-o"])]
    """The policy file to write. It holds the claim."""
    level: float = 0.9
    """Confidence of the claim over the people it is tested on."""
    share: float = 0.9
    """Share of people for whom it is made."""
    bounds: int = 5
    """How many bounds of the model to try, evenly up to L."""
    sharpen: tuple[float, ...] = (1.0,)
    """How many times as much a reading is to count for the providers of the model's panel; several are tried in turn
    and share the confidence."""
    horizon: int = 10
    """Releases of an episode, at most."""
    rounds: int = 40
    """Rounds of value iteration for each policy."""
    episodes: int = 4_096
    """Episodes that attackers learn from, and as many that they are tried on."""
    map: Path | None = None
    """The TOML file that says what the columns are (table, smoking)."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Try the bounds, write the policy, print the claim."""
        from reticent.evaluate.claim import Wanted, three_parts
        from reticent.fit.recorded import fitted_readings
        from reticent.problem.model import read_problem
        from reticent.process.compile_cache import use_compile_cache
        from reticent.solution.calibrate import Tries, calibrate

        self._check()
        use_compile_cache()
        model, wanted = read_problem(self.model), Wanted(self.confidence, self.level, self.share)
        tries = Tries(self.bounds, self.sharpen, self.episodes, self.horizon, self.rounds, self.seed)
        with stages("reading the recordings") as tell:
            found = calibrate(model, fitted_readings(model, self.data, self.map), wanted, tries, tell)
        solution, claim = found.solution, found.claim
        if solution is not None:
            solution.save(self.out)
        parts = [] if solution is None else three_parts(solution.task.promised, claim)
        if self.json:
            tried = [_row(each) for each in found.tried]
            held = None if claim is None else claim.to_json()
            saved = None if solution is None else str(self.out)
            print(json.dumps({"policy": saved, "claim": held, "promise": parts, "tried": tried}))
        else:
            self._print(found, parts)
        if claim is None:
            raise SystemExit(CHECK_FAILED)

    def _check(self) -> None:
        check_seed(self.seed)
        check_writable(self.out)
        for name in ("bounds", "horizon", "rounds"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} must be at least 1, but is {getattr(self, name)}.")
        if not self.sharpen or not all(factor > 0 for factor in self.sharpen):
            raise InputError(f"--sharpen needs numbers above 0, but is {self.sharpen}.")
        if self.episodes < 200:
            raise InputError(f"--episodes must be at least 200 to learn from, but is {self.episodes}.")

    def _print(self, found: "Calibrated", parts: list[str]) -> None:
        from rich.console import Console
        from rich.table import Table

        table = Table(title=f"{len(found.tried[0].found.people)} people whom the model was not fitted to: estimates")
        for heading in ("bound", "sharpened", "people over", "worst", "useful", "accepted"):
            table.add_column(heading, justify="right")
        for each in found.tried:
            row = _row(each)
            accepted = "yes" if row["accepted"] else "no"
            table.add_row(
                f"{row['bound']:.3f}", f"{row['sharpen']:g}", str(row["over"]), f"{row['worst']:.3f}",
                f"{row['useful']:.3f}", accepted,
            )  # fmt: skip
        Console().print(table)
        if not parts:
            print("No claim: too many people were over the limit with the most cautious bound that was tried.")
            return
        for part in parts:
            print(part)
        print(f"Saved {self.out}.\nNext: reticent audit {self.out} --data {self.data}")


def _row(tried: "Tried") -> dict[str, Any]:
    return {
        "bound": tried.bound,
        "sharpen": tried.sharpen,
        "over": len(tried.found.over),
        "worst": tried.found.worst.secret.value,
        "useful": tried.useful,
        "accepted": tried.accepted,
    }
