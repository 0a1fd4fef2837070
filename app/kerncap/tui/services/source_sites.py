"""Where a kernel is probably written, and what it takes: a quick look by name. Extraction proves it with the
compiler.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LIMIT_S = 3.0
_LONGEST_DECLARATION = 4000


@dataclass(frozen=True, slots=True)
class Found:
    """`path:line`, and the parameters as they are written there; both empty where nothing was found."""

    place: str = ""
    parameters: str = ""


def parameters_at(text: str, name: str) -> str:
    """What stands between the brackets after `name`, on one line; empty where there is no such thing."""
    begin = text.find(name)
    while begin >= 0:
        rest = text[begin + len(name) : begin + len(name) + _LONGEST_DECLARATION]
        if rest.lstrip().startswith("("):
            depth = 0
            for index, char in enumerate(rest):
                depth += (char == "(") - (char == ")")
                if char == ")" and depth == 0:
                    return " ".join(rest[rest.index("(") + 1 : index].split())
            return ""
        begin = text.find(name, begin + 1)
    return ""


def site_of(symbol: str, roots: Sequence[Path]) -> Found:
    """The first definition of that name below the roots."""
    from kerncap.source.hip.lexer import symbol_words
    from kerncap.source.hip.tree import find_sites, source_files

    deadline = time.monotonic() + _LIMIT_S
    try:
        sites = find_sites(source_files(roots, deadline), symbol_words(symbol), deadline)
        if not sites:
            return Found()
        site = sites[0]
        lines = site.file.read_text(errors="replace").splitlines()[site.kernel.line - 1 :]
    except OSError:
        return Found()
    text = "\n".join(lines)[: 2 * _LONGEST_DECLARATION]
    return Found(f"{site.file}:{site.kernel.line}", parameters_at(text, site.kernel.name))
