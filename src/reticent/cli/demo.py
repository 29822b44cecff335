"""`reticent demo`."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.cli.terminal import parts_shown


@dataclass(frozen=True)
class Demo:
    """Protect a secret in real recordings: under a minute on two cores; writes a page.

    A wrist sensor tells a service whether its wearer moves (useful U), and whether in an elevator (secret S). The
    demo replays people whom nothing was learned from, with and without the guarantee, and attacks what is sent.
    """

    out: Path = Path("reticent-demo")
    """Folder for the page, its figure and demo.json."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Play, attack, draw."""
        from reticent.demo.moving import PARTS, moving
        from reticent.demo.recorded import source
        from reticent.demo.still import DEFAULT, still
        from reticent.process.compile_cache import use_compile_cache
        from reticent.report.demo import write_demo_report
        from reticent.solution.page import make_folder
        from reticent.study.provenance import provenance

        make_folder(self.out)
        use_compile_cache()
        started = time.perf_counter()
        with parts_shown("loading the recordings", DEFAULT.parts + PARTS + 1) as tell:
            found: dict[str, Any] = {"source": source(), "still": still(tell, DEFAULT)}
            found |= {"moving": moving(tell), "provenance": provenance()}
            tell("drawing the page")
            (self.out / "demo.json").write_text(json.dumps(found, indent=1))
            page = write_demo_report(self.out)
        seconds = time.perf_counter() - started
        if self.json:
            print(json.dumps({"report": str(page), **found, "seconds": seconds}))
        else:
            _print(found["still"], found["moving"], page, seconds)


def _print(found: dict[str, Any], moving: dict[str, Any], page: Path, seconds: float) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    useful, secret = " or ".join(found["useful"]), found["secrets"][-1]
    print(f"A wrist sensor tells a service whether its wearer is {useful} (U), and whether in an {secret} (S).")
    print(f"Replayed: {len(found['people'])} people whom nothing was learned from. Attackers never met who they judge.")
    table = Table(box=SIMPLE, padding=(0, 0, 0, 1), pad_edge=False)
    for heading in ("protection", "readings", "U named, %", "S named, %", "highest belief in S, %"):
        table.add_column(heading, justify="left" if heading == "protection" else "right", no_wrap=True)
    for row in found["rows"]:
        kept = "none" if row["limit"] is None else f"at most {100 * row['limit']:g} %"
        named = [_interval(row[label]) for label in ("useful", "secret")]
        table.add_row(kept, f"{row['releases']:.1f}", *named, f"{100 * row['highest']:.2f}")
    Console().print(table)
    print("Named: balanced accuracy of the strongest attacker, estimates with 95 % intervals; 50 is guessing.")
    print("Belief: of a provider who knows model and public rule. The guarantee keeps it below the bound.")
    present, whole = (moving["rows"][name] for name in ("present", "whole"))
    print(
        f"And when both change, over an hour: bound {100 * moving['limit']:g} %, highest belief ever, of any moment, "
        f"{100 * whole['highest']:.2f} % (a guard of\nthe present alone: {100 * present['highest']:.0f} %). "
        f"U named {_interval(whole['useful'])} %, S in hindsight {_interval(whole['hindsight'])} %."
    )
    print(f"Page: {page.resolve()} ({seconds:.0f} s). Your own data: reticent docs tutorial")


def _interval(number: dict[str, Any]) -> str:
    value, low, high = (100 * number[end] for end in ("value", "low", "high"))
    return f"{value:.0f} [{low:.0f}, {high:.0f}]"
