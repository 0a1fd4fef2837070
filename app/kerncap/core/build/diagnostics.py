"""What a compiler said, as a list: clang and LLD, nvcc and ptxas, Python tracebacks (Triton among them).

Pure text to data; nothing here knows of a terminal. Text that is none of these gives an empty list, and is
then shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LEVELS = r"(?P<level>fatal error|catastrophic error|error|warning|remark|note)"
# clang and gcc: path:line:column: error: text. A path may hold colons, so the numbers are looked for first.
_CLANG = re.compile(rf"(?P<path>[^\s].*?):(?P<line>\d+)(?::(?P<column>\d+))?: {_LEVELS}: (?P<text>.*)")
# nvcc (EDG): path(line): error #20: text, or path(line): error: text
_EDG = re.compile(rf"(?P<path>[^\s(][^(]*)\((?P<line>\d+)\): {_LEVELS}(?: #(?P<code>[\w-]+))?: (?P<text>.*)")
_PTXAS = re.compile(
    r"ptxas (?:(?P<path>[^,]+), line (?P<line>\d+); )?(?P<level>error|fatal|warning|info)\s*: (?P<text>.*)"
)
# A tool that names no place: clang: error: ..., ld.lld: error: undefined symbol: ...
_TOOL = re.compile(
    r"(?P<tool>(?:[\w./+-]*/)?(?:[\w.+-]*(?:clang|lld|hipcc|nvcc|zig|nvlink|ld)[\w.+-]*)|error)"
    r"(?: (?P<level2>fatal|error|warning)\s*)?: (?:(?P<level>fatal error|error|warning): )?(?P<text>.*)"
)
_ENDS = re.compile(
    r"\d+ (?:errors?|warnings?)\b.*(?:generated|detected)|In file included from |\s+from \S+:\d+"
)
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s+File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<where>.*))?')
_TRITON_AT = re.compile(r"at (?P<line>\d+):(?P<column>\d+):")
_LIBRARY = re.compile(r"(?:site|dist)-packages|/lib/python\d|<frozen|/kerncap/core/")


@dataclass(frozen=True)
class Diagnostic:
    """One message. `line` and `column` count from 1, 0 where they are not known; `path` may be empty.

    `severity` is error, warning or note. `context` are the lines that came with it, as they were.
    """

    severity: str
    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    context: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """path:line:column, as far as known."""
        numbers = [str(n) for n in (self.line, self.column) if n]
        return ":".join([self.path or "?", *numbers]) if self.path or numbers else ""


def parse(text: str) -> list[Diagnostic]:
    """The messages in a compiler's output, in its order. Colour codes are left out."""
    lines = _ESCAPE.sub("", text).splitlines()
    found: list[Diagnostic] = []
    at = 0
    while at < len(lines):
        if lines[at].strip() == _TRACEBACK:
            diagnostic, at = _traceback(lines, at + 1)
            if diagnostic is not None:
                found.append(diagnostic)
            continue
        started = _start(lines[at])
        at += 1
        if started is None:
            continue
        context = []
        while at < len(lines) and not _interrupts(lines[at]):
            context.append(lines[at].rstrip())
            at += 1
        while context and not context[-1]:
            context.pop()
        found.append(
            Diagnostic(
                started.severity, started.message, started.path, started.line, started.column, tuple(context)
            )
        )
    return found


def first_error(diagnostics: Sequence[Diagnostic]) -> int | None:
    """Which one to show first: the first error with a place, else the first error, else none."""
    errors = [i for i, d in enumerate(diagnostics) if d.severity == "error"]
    placed = [i for i in errors if diagnostics[i].line]
    return next(iter(placed or errors), None)


def first_error_text(output: str) -> str:
    """What a compiler says first that is an error, on one line; else its first line."""
    found = parse(output)
    index = first_error(found)
    if index is not None:
        place = f"{found[index].place}: " if found[index].place else ""
        return f"{place}error: {found[index].message}"
    return next((line.strip() for line in output.splitlines() if line.strip()), "")


def counts(diagnostics: Sequence[Diagnostic]) -> tuple[int, int]:
    """(errors, warnings)."""
    kinds = [d.severity for d in diagnostics]
    return kinds.count("error"), kinds.count("warning")


def _severity(word: str | None) -> str:
    if word in ("warning",):
        return "warning"
    if word in ("note", "remark", "info"):
        return "note"
    return "error"


def _start(line: str) -> Diagnostic | None:
    for pattern in (_CLANG, _EDG, _PTXAS):
        match = pattern.fullmatch(line.rstrip())
        if match:
            groups = match.groupdict()
            return Diagnostic(
                _severity(groups["level"]),
                groups["text"],
                groups["path"] or "",
                int(groups["line"] or 0),
                int(groups.get("column") or 0),
            )
    match = _TOOL.fullmatch(line.rstrip())
    if match and (match["level"] or match["level2"] or match["tool"] == "error"):
        return Diagnostic(_severity(match["level"] or match["level2"]), match["text"])
    return None


def _interrupts(line: str) -> bool:
    return line.strip() == _TRACEBACK or _ENDS.match(line) is not None or _start(line) is not None


def _traceback(lines: Sequence[str], at: int) -> tuple[Diagnostic | None, int]:
    """One traceback from its first frame on: the innermost frame of the user's own, and the exception."""
    frames: list[tuple[str, int, int]] = []
    start = at
    column = 0
    while at < len(lines) and (lines[at].startswith((" ", "\t")) or not lines[at]):
        match = _FRAME.fullmatch(lines[at].rstrip())
        if match:
            frames.append((match["path"], int(match["line"]), at))
            column = 0
        elif frames and set(lines[at].strip()) <= set("^~") and lines[at].strip():
            column = 1 + lines[at].index(lines[at].strip()[0]) - _indent(lines[at - 1])
        at += 1
    message = lines[at].strip() if at < len(lines) else ""
    at += 1
    more: list[str] = []
    while at < len(lines) and lines[at].strip() != _TRACEBACK and not _FRAME.fullmatch(lines[at].rstrip()):
        if lines[at].startswith(("During handling of", "The above exception was")):
            break  # the exception that follows is the one that ended the program; this one is kept too
        more.append(lines[at].rstrip())
        at += 1
    if not frames and not message:
        return None, at
    while more and not more[-1]:
        more.pop()
    own = [f for f in frames if not _LIBRARY.search(f[0])]
    path, line, where = (own or frames or [("", 0, start)])[-1]
    if not frames or (path, line, where) != frames[-1]:
        column = 0  # the column belongs to the last frame only
    triton = next((m for m in (_TRITON_AT.search(t) for t in [message, *more]) if m), None)
    if triton and "CompilationError" in message:
        reason = next((t for t in reversed(more) if t and not set(t.strip()) <= set("^~")), "")
        message = f"{message} {reason}".strip()
    context = [t.rstrip() for t in lines[where + 1 : start + _frame_end(lines, start, where)]] + more
    return Diagnostic("error", message, path, line, max(column, 0), tuple(context)), at


def _frame_end(lines: Sequence[str], start: int, where: int) -> int:
    end = where + 1
    while (
        end < len(lines) and lines[end].startswith((" ", "\t")) and not _FRAME.fullmatch(lines[end].rstrip())
    ):
        end += 1
    return end - start


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
