"""Pages of an audit and of simulated days: what was found, as JSON and as a report beside it."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reticent.errors import InputError
from reticent.report.write import AUDIT, DAYS, write_report
from reticent.study.provenance import provenance


@dataclass(frozen=True)
class Subject:
    """What was audited: the title of the page, a name such as that of a file, and the SHA-256 of it."""

    title: str
    subject: str
    digest: str


def write_page(folder: Path, found: dict[str, Any], subject: Subject, seed: int) -> tuple[Path, dict[str, Any]]:
    """The report page in this folder, and the record that it was drawn from."""
    make_folder(folder)
    record = {**asdict(subject), "seed": seed, **found, "provenance": provenance()}
    (folder / AUDIT).write_text(json.dumps(record, indent=1))
    return write_report(folder), record


def write_days_page(folder: Path, found: dict[str, Any]) -> Path:
    """The page about simulated days in this folder."""
    make_folder(folder)
    record = {"title": "A day of a policy", **found, "provenance": provenance()}
    (folder / DAYS).write_text(json.dumps(record, indent=1))
    return write_report(folder)


def make_folder(folder: Path) -> None:
    """Make the folder of a report, or say why that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot make the folder {str(folder)!r}: {error.strerror or error}.") from error
