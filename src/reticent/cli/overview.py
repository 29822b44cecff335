"""What `reticent --help` prints, options that are off by default, and the nearest match of a mistyped word."""

import dataclasses
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from tyro.conf import arg

from reticent.errors import InputError

INTRODUCTION = """usage: reticent COMMAND [OPTIONS]

Decides, reading by reading, which sensor may speak, so that a service provider
learns the useful thing and not the secret one. Start with `reticent demo`.
"""
# Commands by job, each with what it is for and one example.
JOBS: dict[str, dict[str, tuple[str, str]]] = {
    "Look around": {
        "demo": ("protect a secret in real recordings, and attack it", "reticent demo"),
        "docs": ("print a page of the documentation", "reticent docs tutorial"),
    },
    "Make a model from recordings": {
        "data": ("describe recordings", "reticent data describe table --data DIR --map mine.toml"),
        "fit": ("make a problem file from recordings", "reticent fit table --data DIR --map mine.toml -o mine.json"),
    },
    "Find a policy": {
        "train": ("train a policy", "reticent train mine.json --confidence 0.8 --enforce coarsen -o p.safetensors"),
        "solve": ("bracket the optimal cost of a small problem", "reticent solve mine.json --confidence 0.8"),
        "calibrate": (
            "choose the bound so that a claim about new people holds",
            "reticent calibrate mine.json --data DIR --confidence 0.65 -o p.safetensors",
        ),
    },
    "Judge it": {
        "evaluate": ("cost, accuracies and violations", "reticent evaluate p.safetensors"),
        "certify": ("how far from optimal it is", "reticent certify p.safetensors"),
        "audit": ("who learns the secret, how surely", "reticent audit p.safetensors --quick"),
    },
    "Run studies": {
        "reproduce": ("a study of the paper", "reticent reproduce synthetic --quick"),
        "sweep": ("every combination of settings", "reticent sweep sweep.toml"),
        "report": ("draw the page of what was run", "reticent report reticent-sweep"),
    },
    "Deploy": {
        "serve": ("the gateway: readings in, releases out", "reticent serve p.safetensors --page"),
        "simulate": ("send readings to it", "reticent simulate p.safetensors | reticent serve p.safetensors"),
        "ledger": ("what a gateway released", "reticent ledger verify p.ledger.db"),
        "export": ("for other programs", "reticent export p.safetensors -o p.onnx"),
    },
}
CLOSING = """
Every command takes --help, and --quiet for results and errors only. --version
prints the version. Shell completion: reticent docs commands.
"""
# Understood by every command, beside its own.
COMMON = ("--help", "--quiet", "--tyro-write-completion", "--tyro-print-completion")
OFF: tuple[Any, ...] = (None, False, ())


def overview() -> str:
    """Commands by job, with one example each."""
    lines = [INTRODUCTION]
    for job, commands in JOBS.items():
        lines.append(f"{job}:")
        for name, (what, example) in commands.items():
            lines += [f"  {name:10} {what}", f"             $ {example}"]
    return "\n".join(lines) + "\n" + CLOSING


def check_words(words: list[str], commands: dict[str, Any]) -> None:
    """Refuse a command or option that does not exist, with the nearest that does."""
    name, *rest = words
    if name.startswith("-"):
        return
    if name not in commands:
        raise InputError(f"There is no command {name!r}.{_nearest(name, list(commands))} `reticent --help` lists them.")
    known = [*COMMON, *options(commands[name])]
    for word in rest:
        option = word.partition("=")[0].replace("_", "-")
        if word.startswith("--") and option not in known:
            raise InputError(
                f"`reticent {name}` has no option {option}.{_nearest(option, known)} "
                f"`reticent {name} --help` lists them."
            )


def options(command: type) -> Iterator[str]:
    """All long options of a command."""
    for name, annotation in get_type_hints(command, include_extras=True).items():
        kind = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            yield from options(kind)
        else:
            yield f"--{name.replace('_', '-')}"


@cache
def without_empty_defaults(command: type) -> type:
    """The command, whose help no longer prints None, False or nothing as a default: it says in words what is done."""
    for field in dataclasses.fields(command):
        annotation = command.__annotations__[field.name]
        kind = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            without_empty_defaults(kind)
        elif any(field.default is off for off in OFF):
            command.__annotations__[field.name] = Annotated[
                annotation, arg(help_behavior_hint="", metavar=_value(kind))
            ]
    return command


def _value(kind: Any) -> str | None:
    """What an option that may be left out takes, without the None of its type; None where tyro says it well."""
    match [each for each in get_args(kind) if each is not NoneType]:
        case [each] if NoneType in get_args(kind):
            choices = get_args(each) if get_origin(each) is Literal else ()
            return f"{{{','.join(choices)}}}" if choices else getattr(each, "__name__", "value").upper()
    return None


def _nearest(word: str, known: list[str]) -> str:
    found = get_close_matches(word, known, n=1)
    return f" Did you mean {found[0]}?" if found else ""
