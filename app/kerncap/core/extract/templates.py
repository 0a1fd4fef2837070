"""The files of a generated project, made from reproducer_templates/."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import jinja2

from kerncap.core.errors import DeviceError


def templates_dir() -> Path:
    """Where reproducer_templates/ is: `_templates/` in the installed package, else the source tree beside it.

    Raises DeviceError where neither is there.
    """
    package = Path(__file__).resolve().parents[2]
    for candidate in (package / "_templates", package.parent.parent / "reproducer_templates"):
        if candidate.is_dir():
            return candidate
    raise DeviceError(
        f"reproducer_templates is not beside {package}: install kerncap again.", missing="templates"
    )


def render(name: str, **values: object) -> str:
    """A template with values put in as text; nothing in a value is expanded again."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates_dir()),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # Markdown and make, each with its own filter below
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["make_word"] = make_word
    environment.filters["shell_word"] = shlex.quote
    environment.filters["fenced"] = fenced
    environment.filters["code"] = code
    return environment.get_template(name).render(**values)


def make_word(text: str) -> str:
    """Text as a make variable's value that make does not expand."""
    return text.replace("$", "$$").replace("#", "\\#").replace("\n", " ")


def fenced(text: str, language: str = "") -> str:
    """A fenced block of Markdown that no content can leave."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def code(text: str) -> str:
    """An inline code span of Markdown that no content can leave."""
    flat = re.sub(r"\s+", " ", text)
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", flat)), default=0) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"
