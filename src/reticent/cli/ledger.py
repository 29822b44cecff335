"""`reticent ledger`."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from reticent.cli.options import check_writable
from reticent.cli.terminal import console
from reticent.errors import InputError

if TYPE_CHECKING:
    from reticent.gateway.entry import Entry
    from reticent.gateway.ledger import Ledger
    from reticent.gateway.runtime import Runtime
    from reticent.gateway.verify import Verdict

# Where `reticent serve` puts the ledger of a policy.
LEDGER_ENDING = ".ledger.db"
Do = Literal["show", "verify", "export", "holds", "repair", "migrate"]
OPTIONS: dict[Do, set[str]] = {
    "show": {"subject", "policy"},
    "verify": {"policy", "step", "earlier", "against"},
    "export": {"subject", "out"},
    "holds": {"subject", "everybody", "clock"},
    "repair": {"against"},
    "migrate": {"policy", "earlier"},
}
HOLDS = ("list", "put", "lift")
ALL_OPTIONS = sorted(set().union(*OPTIONS.values()))


@dataclass(frozen=True)
class LedgerCommand:
    """Show, verify, export, repair or migrate a gateway's ledger, or list and lift its holds. A gateway may use it
    meanwhile."""

    do: Annotated[Positional[Do], arg(metavar="show|verify|export|holds|repair|migrate")]
    """show: list subjects; verify: check integrity; export: write a table for audits, or to verify against later;
    holds: list or lift holds; repair: restore damaged entries from an export; migrate: carry what was spent over to
    another policy."""
    where: Annotated[Positional[str], arg(metavar="LEDGER")]
    """The file, or postgresql://user@host/database (password by PGPASSFILE or PGPASSWORD, never here). After `holds`:
    `list`, `put` or `lift`, then the ledger."""
    held_in: Annotated[Positional[str | None], arg(metavar="[LEDGER]")] = None
    """The ledger after `holds list`, `holds put` or `holds lift`."""
    subject: str | None = None
    """Show or export this subject only; or hold it, or lift its hold."""
    everybody: bool = False
    """Put or lift a pause, which holds everybody on all gateways of the ledger."""
    clock: bool = False
    """Lift all subjects whose newest entry is ahead of this machine's clock, which must be right."""
    policy: Path | None = None
    """verify: recompute every belief with this policy file, and check the bound over all sessions. show: tell which
    subjects have nothing left to say; by default with the policy file beside the ledger. migrate: the next policy."""
    step: float | None = None
    """verify: seconds of a step of time, for a policy of a problem that goes on whose model does not say it."""
    earlier: tuple[Path, ...] = ()
    """migrate, verify: policy files that were in force before."""
    against: Path | None = None
    """verify: check that no entry of this earlier export is missing or rewritten. repair: take entries from it."""
    out: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Export to this file, in the format of its suffix: .parquet or .jsonl."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Open it and do what is asked."""
        for name in ALL_OPTIONS:
            if getattr(self, name) not in (None, False, ()) and name not in OPTIONS[self.do]:
                raise InputError(f"--{name} is not an option of `reticent ledger {self.do}`.")
        if (self.held_in is not None) != (self.do == "holds") or (self.held_in and self.where not in HOLDS):
            how = " or ".join(f"holds {each} LEDGER" for each in HOLDS) if self.do == "holds" else f"{self.do} LEDGER"
            raise InputError(f"Write `reticent ledger {how}`.")
        if self.held_in is not None:
            self._holds(self.held_in)
        else:
            do = {"show": self._show, "verify": self._verify, "export": self._export, "migrate": self._migrate}
            do.get(self.do, self._repair)()

    def _holds(self, where: str) -> None:
        from reticent.cli.holds import lift_holds, list_holds, put_hold

        with _opened(where, beside=self.where != "list") as ledger:
            if self.where == "list":
                return list_holds(ledger, self.json)
            self._check_subject(ledger)
            if self.where == "lift":
                return lift_holds(ledger, self.subject, self.everybody, self.clock)
            return put_hold(ledger, self.subject, self.everybody)

    def _repair(self) -> None:
        from reticent.cli.holds import repair_ledger

        with _opened(self.where, beside=True) as ledger:
            repair_ledger(ledger, self.against)

    def _migrate(self) -> None:
        import time

        from reticent.gateway.migrate import by_digest, migrate
        from reticent.gateway.runtime import Runtime

        if self.policy is None or not self.earlier:
            raise InputError("Write `reticent ledger migrate LEDGER --policy NEXT --earlier POLICY`.")
        later, earlier = Runtime.load(self.policy), by_digest(Runtime.load(path, True) for path in self.earlier)
        with _opened(self.where, beside=True) as ledger:
            done = migrate(ledger, earlier, later, time.time())
        if self.json:
            print(json.dumps({"ledger": self.where, **asdict(done)}))
        else:
            print(f"Carried over: {done.subjects:,} subjects; {done.already:,} were under this policy already.")

    def _show(self) -> None:
        from reticent.gateway.sessions import ASSUMPTION

        runtime = self._policy_for_show()
        with _opened(self.where) as ledger, console().status("Reading ..."):
            self._check_subject(ledger)
            names = ledger.subjects() if self.subject is None else [self.subject]
            found = [_overview(ledger, name, runtime) for name in names]
        if self.json:
            print(json.dumps({"ledger": self.where, "subjects": found, "assumption": ASSUMPTION}))
        else:
            _print_overview(found)

    def _policy_for_show(self) -> "Runtime | None":
        """The policy that tells which subjects have nothing left: as given, or the file beside the ledger."""
        from reticent.gateway.runtime import Runtime

        if self.policy is not None:
            return Runtime.load(self.policy, allow_unbounded=True)
        beside = Path(self.where.removesuffix(LEDGER_ENDING) + ".safetensors")
        if not (self.where.endswith(LEDGER_ENDING) and beside.is_file()):
            return None
        try:
            return Runtime.load(beside, allow_unbounded=True)
        except InputError:
            return None

    def _check_subject(self, ledger: "Ledger") -> None:
        if self.subject is not None and not ledger.counts(self.subject).entries:
            raise InputError(f"The ledger has no subject {self.subject!r}. `reticent ledger show` lists all.")

    def _verify(self) -> None:
        from reticent.gateway.export import read_heads
        from reticent.gateway.loading import load_runtime
        from reticent.gateway.moving_runtime import MovingRuntime
        from reticent.gateway.runtime import Runtime
        from reticent.gateway.sessions import ASSUMPTION
        from reticent.gateway.verify import verify

        runtime = None if self.policy is None else load_runtime(self.policy, self.step, allow_unbounded=True)
        if self.earlier and isinstance(runtime, MovingRuntime):
            raise InputError("--earlier is for problems with a stop: a life that goes on has one policy.")
        assumption = ASSUMPTION if runtime is None else runtime.assumption
        heads = None if self.against is None else read_heads(self.against)
        with _opened(self.where) as ledger, console().status("Verifying ..."):
            verdict = verify(ledger, runtime, heads, [Runtime.load(path, True) for path in self.earlier])
        if self.json:
            found = {"ledger": self.where, "whole": verdict.fault is None, **asdict(verdict)}
            promise = [] if runtime is None else runtime.promise
            print(json.dumps({**found, "assumption": assumption, "promise": promise}))
        else:
            self._print_verdict(verdict, assumption)
            if runtime is not None and verdict.fault is None:
                print(*runtime.promise, sep="\n")
        if verdict.fault is not None:
            raise SystemExit(1)

    def _print_verdict(self, verdict: "Verdict", assumption: str) -> None:
        if verdict.fault is not None:
            print(f"FAIL: {verdict.fault.sentence}")
            return
        print(f"PASS: {verdict.subjects:,} subjects, {verdict.entries:,} entries; chains, numbers and times are right.")
        if verdict.clocks_set_back:
            print(f"Clocks set back by an operator: {verdict.clocks_set_back:,} stops from which times start again.")
        if self.policy is not None:
            print(
                "Every belief follows from what was sent, and none reaches the bound: the highest confidence is "
                f"{verdict.highest_confidence}, the most bits spent {verdict.most_bits}."
            )
        if self.against is not None:
            print("Everything in the export is still there.")
        print(assumption)

    def _export(self) -> None:
        from reticent.gateway.export import ENDINGS, write_export

        if self.out is None or self.out.suffix.lower() not in ENDINGS:
            raise InputError(f"`reticent ledger export` needs -o FILE with the suffix {' or '.join(ENDINGS)}.")
        check_writable(self.out)
        with _opened(self.where) as ledger, console().status("Exporting ..."):
            self._check_subject(ledger)
            try:
                entries = write_export(ledger, self.out, self.subject)
            except OSError as error:
                raise InputError(f"Cannot write {str(self.out)!r}: {error.strerror or error}.") from error
        print(json.dumps({"file": str(self.out), "entries": entries}) if self.json else f"Saved {self.out}.")


@contextmanager
def _opened(where: str, beside: bool = False) -> "Iterator[Ledger]":
    """The ledger, read-only, or `beside` a gateway for lifting holds and repairs; trouble is raised as InputError."""
    from reticent.gateway.ledger import LedgerTrouble
    from reticent.gateway.opening import open_ledger

    try:
        with open_ledger(where, read_only=not beside, beside=beside) as ledger:
            yield ledger
    except LedgerTrouble as trouble:
        raise InputError(str(trouble)) from trouble


def _overview(ledger: "Ledger", subject: str, runtime: "Runtime | None") -> dict[str, Any]:
    """Summary of a subject, from its newest entry; `verify` reads all entries."""
    from reticent.gateway.ledger import LedgerTrouble

    counts, entry, trouble = ledger.counts(subject), None, None
    try:
        entry = ledger.last(subject)
    except LedgerTrouble as error:
        trouble = str(error)
    if entry is not None and counts.entries != entry.number + 1:
        trouble = f"There are {counts.entries} entries, but the newest has number {entry.number}."
    return {
        "subject": subject,
        "sessions": counts.sessions,
        "releases": counts.releases,
        "confidence": entry and entry.confidence,
        "spent_bits": entry and entry.spent_bits,
        "last_time": entry and entry.time,
        "resting": entry and entry.symbol is None,
        "exhausted": entry and _exhausted(entry, runtime),
        "trouble": trouble,
    }


def _exhausted(entry: "Entry", runtime: "Runtime | None") -> bool | None:
    """Whether nothing is left to say; None if that cannot be told without the entry's policy."""
    import numpy as np

    from reticent.gateway.standing import standing_of

    if entry.symbol is not None:
        return False
    if runtime is None or entry.policy != runtime.digest:
        return None
    start = runtime.next_session(standing_of(entry))
    return runtime.exhausted(start, runtime.decide(start, np.random.default_rng(0)))


def _now(each: dict[str, Any]) -> str:
    """The state of a subject, as far as the ledger tells."""
    if each["resting"] is None:
        return "?"
    if not each["resting"]:
        return "speaks"
    return {True: "silent", False: "rests", None: "ended"}[each["exhausted"]]


def _print_overview(found: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from reticent.gateway.sessions import ASSUMPTION, EXHAUSTED

    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("subject", overflow="fold")
    for heading in ("sessions", "releases", "confidence", "bits", "last time", "now"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in found:
        known = each["confidence"] is not None
        last = datetime.fromtimestamp(each["last_time"]) if known else None
        table.add_row(
            escape(shown(each["subject"])),
            f"{each['sessions']:,}",
            f"{each['releases']:,}",
            # Rounded down: a confidence below the bound must not be printed as the bound.
            f"{math.floor(round(1e6 * each['confidence'], 3)) / 1e6:.6f}" if known else "?",
            f"{each['spent_bits']:.6f}" if known else "?",
            last.strftime("%Y-%m-%d %H:%M") if last else "?",
            _now(each),
        )
    Console().print(table)
    silent = sum(each["exhausted"] is True for each in found)
    if silent:
        print(f"silent, {silent:,} of {len(found):,}: {EXHAUSTED}")
    if any(each["resting"] and each["exhausted"] is None for each in found):
        print("ended: the last session is over. Give the policy file by --policy to learn who has nothing left to say.")
    print(ASSUMPTION)
    troubles = [each for each in found if each["trouble"]]
    for each in troubles:
        print(f"TROUBLE with {shown(each['subject'])}: {each['trouble']}")
    if not troubles:
        print("No trouble in the newest entries; `reticent ledger verify` looks at all.")


def shown(name: str) -> str:
    """A name from outside, with control characters escaped."""
    return name if name.isprintable() else ascii(name)
