"""`reticent audit`."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from reticent.cli.options import check_seed
from reticent.cli.terminal import say_what_is_assumed, stages
from reticent.errors import InputError

# Exit codes of its own: 1 is Python's own when it crashes, 2 is invalid input.
CHECK_FAILED, COULD_NOT_CHECK = 3, 4


@dataclass(frozen=True)
class AuditCommand:
    """Attack the releases of a policy, or of another system: who learns the secret, how surely, with what evidence.

    Exit codes: 0 no check failed; 1 the command crashed; 2 invalid input; 3 a check failed, such as a bound that does
    not hold; 4 nothing could be checked, because there are too few people or episodes.
    """

    policy: Annotated[Positional[Path | None], arg(metavar="POLICY")] = None
    """A policy file. Readings are drawn from its model, or with --data replayed from people it was not fitted to."""
    traces: Path | None = None
    """In place of a policy: a file of what another system released, as Parquet, CSV (.csv) or JSON lines (.jsonl,
    .ndjson). Columns: see `reticent docs traces`."""
    problem: Path | None = None
    """With --traces: a problem file, for an attacker who knows the model; by default the one stored in the traces."""
    confidence: float | None = None
    """With --traces: the bound on confidence in the secret that the other system claims to keep, such as 0.8."""
    data: Path | None = None
    """With a policy for a fitted model: the folder with the recordings."""
    map: Path | None = None
    """With --data: the TOML file that says what the columns are (table, smoking)."""
    episodes: int = 20_000
    """Episodes to simulate or to read; attackers learn from one part and are judged on the other."""
    days: int = 100
    """Of a policy for a problem that goes on: days to simulate, each of another person."""
    quick: bool = False
    """A quick audit: at most 4,000 episodes, without network, learning curves, sessions and wrong models."""
    out: Path = Path("reticent-audit")
    """Folder for the report page, its figures and audit.json."""
    seed: int = 0
    """Seed of episodes, attackers, splits and intervals."""
    json: bool = False
    """Print one JSON object instead of the verdict."""

    def run(self) -> None:
        """Attack, write the page, print the verdict."""
        from reticent.process.compile_cache import use_compile_cache
        from reticent.solution.page import Subject, make_folder, write_page

        self._check()
        make_folder(self.out)
        use_compile_cache()
        with stages("reading") as tell:
            found = self._found(tell)
            subject = self.policy or self.traces
            assert subject is not None
            tell("drawing the report")
            about = Subject(f"Audit of {subject.name}", str(subject), _digest(subject))
            page, found = write_page(self.out, found, about, self.seed)
        if self.json:
            print(json.dumps({"report": str(page), **found}))
        else:
            _print(found, page)
        if found["passed"] is False:
            raise SystemExit(CHECK_FAILED)
        if not found["checkable"]:
            raise SystemExit(COULD_NOT_CHECK)

    def _check(self) -> None:
        check_seed(self.seed)
        if self.episodes < 200:
            raise InputError(
                f"At least 200 episodes are needed to learn from some and judge on others, not {self.episodes}."
            )
        if (self.policy is None) == (self.traces is None):
            raise InputError("Give either a policy file or --traces FILE.")
        if self.traces is not None and (self.data or self.map):
            raise InputError("--data and --map are for policies; traces hold what was released already.")
        if self.policy is not None and (self.problem or self.confidence is not None):
            raise InputError("--problem and --confidence are for traces; a policy file holds its problem and bound.")
        if self.confidence is not None and not 0 < self.confidence <= 1:
            raise InputError(f"--confidence must lie between 0 and 1, but is {self.confidence:g}.")
        for what, file in (("policy file", self.policy), ("file", self.traces), ("problem file", self.problem)):
            if file is not None and not file.is_file():
                raise InputError(f"There is no {what} {str(file)!r}.")

    def _found(self, tell: Any) -> dict[str, Any]:
        if self.traces is not None:
            return self._of_traces(tell)
        from reticent.solution.ongoing import OngoingSolution
        from reticent.solution.solve import load

        assert self.policy is not None
        solution = load(self.policy)
        if isinstance(solution, OngoingSolution):
            if self.data or self.map:
                raise InputError("--data and --map replay readings until a stop; this policy goes on. Leave them out.")
            return solution.audit(self.days, self.seed, self.quick, progress=tell).to_json()
        if self.data is not None:
            say_what_is_assumed(solution.task.model)
        return solution.audit(
            self.episodes, self.seed, self.quick, data=self.data, map=self.map, progress=tell
        ).to_json()

    def _of_traces(self, tell: Any) -> dict[str, Any]:
        from dataclasses import replace

        from reticent.audit.audit import Context, audit_traces
        from reticent.audit.trace_files import MovingTraceFile, read_any_traces
        from reticent.audit.trial import QUICK_EPISODES, AuditOptions
        from reticent.problem.bound import Unbounded
        from reticent.problem.model import read_problem
        from reticent.problem.task import Task

        assert self.traces is not None
        model = read_problem(self.problem) if self.problem else None
        episodes = min(self.episodes, QUICK_EPISODES) if self.quick else self.episodes
        file = read_any_traces(self.traces, episodes, model, self.seed)
        size = f"{file.rows:,} rows, {file.episodes:,} episodes in the file."
        options = AuditOptions(self.seed, self.quick, tell)
        if isinstance(file, MovingTraceFile):
            from reticent.audit.moving_audit import audit_moving

            return audit_moving(file.traces, file.model, self.confidence, options, (size, *file.notes)).to_json()
        task = file.task
        if task is not None and self.confidence is not None:
            raise InputError("These traces come with their policy's bound: leave --confidence out.")
        if model is not None:
            task = Task(model, Unbounded()) if task is None else replace(task, model=model)
        audit = audit_traces(file.traces, task, self.confidence, Context(notes=(size, *file.notes)), options)
        alone = {"audited": None, "baselines": [], "same_utility": [], "forgotten": [], "carried": []}
        return {**audit.to_json(), **alone, "wrong_models": [], "by_person": None, "promise": []}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _print(found: dict[str, Any], page: Path) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from reticent.report.audit_tables import attack_rows, spaced

    first, *rest = found["verdict"]
    print("\n".join((first, found["how_to_read"], *rest, *found.get("promise", ()))))
    table = Table(title="Balanced accuracy in %, 95 % intervals", box=SIMPLE, padding=(0, 0, 0, 1), pad_edge=False)
    for heading in ("attacker", "learned from", "secret", "useful"):
        table.add_column(heading, justify="left" if heading in ("attacker", "learned from") else "right", no_wrap=True)
    for attacker, learned_from, secret, useful, *_ in attack_rows(found):
        table.add_row(attacker, learned_from, secret, useful)
    # Wide enough for all numbers, also where nobody says how wide it is.
    wide = Console()
    wide.width = max(wide.width, 100)
    wide.print(table)
    for each in found.get("observers", ()):
        print(f"Observer of {each['observer']}: {spaced(each['secret']['balanced'])} % ({each['attacker']}).")
    for check in found["checks"]:
        print(f"{'pass' if check['passed'] else 'FAIL'}: {check['name']}. {check['sentence']}")
    for note in found["notes"]:
        print(f"- {note}")
    print(f"Report: {page.resolve()}")
