"""Where a kernel is written and what it takes, where a quick look proves it; else why it is not shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LIMIT_S = 3.0
_LONGEST_DECLARATION = 4000
_UNPROVEN = "not proven to be what runs; extraction asks the compiler"


@dataclass(frozen=True, slots=True)
class Found:
    """`path:line`, and the parameters as they are written there; `note` says why there is no place.

    All are empty where nothing was looked for, or nothing found.
    """

    place: str = ""
    parameters: str = ""
    note: str = ""


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


def site_of(symbol: str, code_hash: str, program: Path | None, roots: Sequence[Path]) -> Found:
    """The definition of the kernel that runs, below the roots or by its own debug information."""
    from kerncap.source.hip.lexer import symbol_words
    from kerncap.source.hip.running import RunningCode, look

    seen = look(RunningCode(symbol, code_hash, program), roots, _LIMIT_S)
    if seen.place is None:
        if not seen.files:
            return Found()
        files = "1 file defines" if seen.files == 1 else f"{seen.files} files define"
        return Found(note=f"{files} this name, {_UNPROVEN}")
    place = seen.place
    if not place.line:
        return Found(str(place.file))
    try:
        lines = place.file.read_text(errors="replace").splitlines()[place.line - 1 :]
    except OSError:
        return Found(f"{place.file}:{place.line}")
    text = "\n".join(lines)[: 2 * _LONGEST_DECLARATION]
    return Found(f"{place.file}:{place.line}", parameters_at(text, symbol_words(symbol)[0]))
