"""Hooks of the documentation site: the help of every command, equations as MathML, and links out of the folder."""

import html
import os
import re
import subprocess
import sys
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

SHIM = "https://unpkg.com/iframe-worker/shim"
# As pymdownx.arithmatex marks them.
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the page with the help of every command."""
    files.append(File.generated(config, "reference/command-line.md", content=command_line()))
    return files


def command_line() -> str:
    """The help of every command, as the parser prints it."""
    from reticent.cli import COMMANDS

    parts = ["# Command line", "The help of every command, as its parser prints it."]
    for name in COMMANDS:
        parts.append(f"## {name}\n\n```text\n{_help(name)}\n```")
    return "\n\n".join(parts)


def _help(name: str) -> str:
    wide = {**os.environ, "COLUMNS": "84", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "reticent", name, "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=wide).stdout.strip()


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What lies outside of the folder is in the repository, not on the site: its name stays, the link goes."""
    return re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Equations as MathML, which browsers draw without a script."""
    return EQUATION.sub(_mathml, content)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The script that lets search run from a folder comes from the site, not from the net."""
    return output.replace(SHIM, get_relative_url("assets/iframe-worker.js", page.url))


def on_post_template(output: str, **_: Any) -> str:
    """The same for the page that says that there is none."""
    return output.replace(SHIM, "assets/iframe-worker.js")


def _mathml(found: re.Match[str]) -> str:
    display = "block" if found[1] == "div" else "inline"
    return convert(html.unescape(found[2]), display=display)
