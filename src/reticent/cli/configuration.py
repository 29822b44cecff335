"""Options from a file: `reticent serve --config gateway.toml`. Its keys are the options of the command line."""

import tomllib
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from reticent.errors import InputError

CONFIG, POLICY = "config", "policy"


def with_configured(words: list[str], options: Collection[str]) -> list[str]:
    """The words of a command with those of the file that --config names, if there is one; the former win.

    `options` are the names that the file may use, in the spelling of the command line.
    """
    path = _named(words)
    if path is None:
        return words
    said = {word.partition("=")[0].removeprefix("--").replace("_", "-") for word in words if word.startswith("--")}
    given = {name: value for name, value in read(path, options).items() if name not in {*said, POLICY}}
    return [*words, *(word for name, value in given.items() for word in _words(path, name, value))]


def policy_of(path: Path, options: Collection[str]) -> Path | None:
    """The policy file that the configuration names, if it does."""
    named = read(path, options).get(POLICY)
    return None if named is None else Path(_word(path, POLICY, named))


def read(path: Path, options: Collection[str]) -> dict[str, Any]:
    """The options in a file, by name; an `InputError` for a file that cannot be read and for unknown names."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read the configuration {str(path)!r}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The configuration {str(path)!r} is not TOML: {error}.") from error
    found = {name.replace("_", "-"): value for name, value in found.items()}
    for name in found.keys() - {*options, POLICY}:
        near = get_close_matches(name, [*options, POLICY], 1)
        meant = f"Did you mean {near[0]!r}?" if near else "`reticent serve --help` lists the options."
        raise InputError(f"The configuration {str(path)!r} has an unknown option {name!r}. {meant}")
    return found


def _named(words: list[str]) -> Path | None:
    """The file that the words name, if they do."""
    for word, following in zip(words, [*words[1:], None], strict=True):
        name, equals, value = word.partition("=")
        if name == f"--{CONFIG}":
            # Without a value the parser of the command line says what is missing.
            return Path(value) if equals else Path(following) if following else None
    return None


def _words(path: Path, name: str, value: Any) -> Iterator[str]:
    """The words that set this option."""
    if value is False:
        return
    yield f"--{name}"
    if value is not True:
        yield from (_word(path, name, each) for each in (value if isinstance(value, list) else [value]))


def _word(path: Path, name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"The configuration {str(path)!r} sets {name!r} to {value!r}: give text or a number.")
    return str(value)
