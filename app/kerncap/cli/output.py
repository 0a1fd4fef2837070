"""What commands print: one JSON document or text on stdout, diagnostics on stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import click

from kerncap.core.errors import Interrupted, KerncapError
from kerncap.core.files import json_text

F = TypeVar("F", bound=Callable[..., Any])
ERROR_SCHEMA = "kerncap-error/1"


def json_option(function: F) -> F:
    """Adds --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")(
        function
    )


def device_option(function: F) -> F:
    """Adds --device."""
    return click.option(
        "--device",
        metavar="DEVICE",
        help="rocm[:N], cuda[:N], sim:gfx942[xN], sim:gfx90a[xN], or auto "
        "(default: KERNCAP_DEVICE, else auto).",
    )(function)


def emit_json(document: Any) -> None:
    """Prints the one document."""
    sys.stdout.write(json_text(document))
    sys.stdout.flush()


def say(text: str = "") -> None:
    """A line of a command's result, on stdout."""
    sys.stdout.write(printable(text) + "\n")


def note(text: str) -> None:
    """A diagnostic, on stderr."""
    sys.stdout.flush()
    click.echo(printable(f"kerncap: {text}"), err=True)


def path_text(path: str) -> str:
    """A path as short as it can be said: from the current directory where it is inside of that."""
    near = os.path.relpath(path)
    return path if near.startswith("..") else near


def printable(text: str) -> str:
    """Text that came from a program or a file, without what would drive the terminal."""
    clean = "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)
    encoding = sys.stdout.encoding or "utf-8"
    return clean.encode(encoding, "replace").decode(encoding)


def error_document(message: str, exit_code: int, details: dict[str, object] | None = None) -> None:
    """The document of a failed command under --json."""
    try:
        emit_json({"schema": ERROR_SCHEMA, "error": message, "exit_code": exit_code, **(details or {})})
    except (TypeError, ValueError):
        emit_json({"schema": ERROR_SCHEMA, "error": message, "exit_code": exit_code})


def reported(exit_code: int, report: Callable[[], None]) -> int:
    """Reports an error; returns `exit_code`, also where stdout or stderr cannot be written to."""
    try:
        report()
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
    except (OSError, ValueError) as error:
        silence_stdout()
        with suppress(OSError, ValueError):
            click.echo(f"kerncap: stdout or stderr cannot be written: {error}", err=True)
    return exit_code


def fail(error: KerncapError | Interrupted, as_json: bool) -> int:
    """Reports an error; returns its exit code."""

    def report() -> None:
        try:
            if as_json:
                error_document(error.message, error.exit_code, getattr(error, "details", None))
            else:
                sys.stdout.flush()
        finally:
            click.echo(printable(f"kerncap: {error.message}"), err=True)

    return reported(error.exit_code, report)


def open_streams() -> None:
    """Puts /dev/null where stdin, stdout or stderr is closed: else the next file that is opened would be
    taken for it, by us or by a program that we start.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def silence_stdout() -> None:
    """Whoever read our output is gone: nothing more is written, and nothing complains at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def program_stdout(as_json: bool) -> int | None:
    """Where the program's stdout goes: to stderr where ours must hold one document."""
    return 2 if as_json else None


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> str:
    """Columns padded with spaces: numbers to the right, the columns in `left` and the last one to the
    left.
    """
    widths = [max(len(line[i]) for line in [headings, *rows]) for i in range(len(headings))]
    last = len(headings) - 1
    lines = []
    for line in [headings, *rows]:
        cells = []
        for i, cell in enumerate(line):
            if i == last:
                cells.append(cell)
            else:
                cells.append(cell.ljust(widths[i]) if i in left else cell.rjust(widths[i]))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


class ProgressLine:
    """One line on stderr that is overwritten, and only on a terminal."""

    def __init__(self, enabled: bool | None = None) -> None:
        self.enabled = sys.stderr.isatty() if enabled is None else enabled
        self._shown = False

    def show(self, text: str) -> None:
        """Replaces the line."""
        if self.enabled:
            width = shutil.get_terminal_size().columns
            sys.stderr.write("\r\x1b[K" + printable(text)[: max(10, width - 1)])
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
