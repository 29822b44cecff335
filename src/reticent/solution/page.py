"""The page of an audit: what was found, as `audit.json` and as a report beside it."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reticent.errors import InputError
from reticent.report.audit import write_audit_report
from reticent.study.provenance import provenance


@dataclass(frozen=True)
class Subject:
    """What was audited: the title of the page, a name such as that of a file, and the SHA-256 of it."""

    title: str
    subject: str
    digest: str


def write_page(folder: Path, found: dict[str, Any], subject: Subject, seed: int) -> tuple[Path, dict[str, Any]]:
    """The report page in this folder, and the record that it was drawn from."""
    _, record = write_record(folder, found, subject, seed)
    return write_audit_report(folder), record


def write_record(folder: Path, found: dict[str, Any], subject: Subject, seed: int) -> tuple[Path, dict[str, Any]]:
    """`audit.json` in this folder, and what it holds."""
    make_folder(folder)
    record = {**asdict(subject), "seed": seed, **found, "provenance": provenance()}
    path = folder / "audit.json"
    path.write_text(json.dumps(record, indent=1))
    return path, record


def make_folder(folder: Path) -> None:
    """Make the folder of a report, or say why that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot make the folder {str(folder)!r}: {error.strerror or error}.") from error
