"""`reticent docs`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from reticent.errors import InputError


@dataclass(frozen=True)
class Docs:
    """Print a page of the documentation, as Markdown; without a name, list the pages."""

    name: Annotated[Positional[str | None], arg(metavar="NAME")] = None
    """The page, such as `recordings`."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Print it."""
        found = pages()
        if self.name is None:
            titles = {name: _title(path) for name, path in found.items()}
            print(
                json.dumps(titles) if self.json else "\n".join(f"{name:12} {title}" for name, title in titles.items())
            )
            return
        if self.name not in found:
            raise InputError(f"There is no page {self.name!r}; there are {', '.join(found)}.")
        text = found[self.name].read_text(encoding="utf-8")
        print(json.dumps({"name": self.name, "text": text}) if self.json else text, end="\n" if self.json else "")


def pages() -> dict[str, Path]:
    """All pages by name: those in the installed package, or those of the repository that it is run from."""
    package = Path(__file__).parents[1]
    installed = package / "docs"
    folder = installed if installed.is_dir() else package.parents[1] / "docs"
    return {path.stem: path for path in sorted(folder.glob("*.md"))}


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
