"""Published files, as downloaded (a zip) or unpacked (a folder): both are read alike."""

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from reticent.errors import InputError


class Archive(NamedTuple):
    """Files by their path inside, with "/" between folders. Reads from a zip without unpacking it."""

    path: Path
    names: tuple[str, ...]

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Names and contents of some of the files."""
        name = ""
        try:
            if self.path.is_dir():
                for name in names:
                    yield name, (self.path / name).read_bytes()
            else:
                with zipfile.ZipFile(self.path) as archive:
                    for name in names:
                        yield name, archive.read(name)
        except (OSError, zipfile.BadZipFile, EOFError, zlib.error) as error:
            raise InputError(f"Cannot read {name!r} of {str(self.path)!r}, which may be truncated: {error}.") from error


def open_archive(path: Path) -> Archive:
    """A zip file or a folder."""
    if path.is_dir():
        return Archive(path, tuple(sorted(file.relative_to(path).as_posix() for file in path.rglob("*.*"))))
    try:
        with zipfile.ZipFile(path) as archive:
            return Archive(path, tuple(sorted(name for name in archive.namelist() if not name.endswith("/"))))
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{str(path)!r} is truncated or no zip file: {error}.") from error


def find_archive(folder: Path, candidates: tuple[str, ...], where_from: str) -> Archive:
    """The first of the candidates that is in the folder; else a sentence on what to get from where."""
    if not folder.is_dir():
        raise InputError(f"There is no data folder {str(folder)!r}. {where_from}")
    for name in candidates:
        if (folder / name).exists():
            return open_archive(folder / name)
    raise InputError(f"None of {list(candidates)} is in {str(folder)!r}. {where_from}")
