"""`reticent demo`."""

from dataclasses import dataclass
from pathlib import Path

from reticent.cli.study import run_shipped


@dataclass(frozen=True)
class Demo:
    """Run the paper's synthetic study in a quick setting: about ten minutes on two cores."""

    out: Path = Path("reticent-demo")
    """Folder for the report, figures and results; finished parts found there are not run again."""
    json: bool = False
    """Print one JSON object instead of the table."""

    def run(self) -> None:
        """Train, evaluate, draw."""
        run_shipped("synthetic-quick", self.out, self.json)
