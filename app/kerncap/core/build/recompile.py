"""Rebuilding a reproducer's variant: `recompile(DIR)`, and as a command for its Makefile
(kerncap.cli.recompile).
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kerncap.core.build.compile_file import NAME, OVERLAY, CompileFile, layout_of
from kerncap.core.build.device_compile import DeviceCompile, Overlay
from kerncap.core.build.nvcc_compile import NvccCompile
from kerncap.core.build.toolchain import CompileError
from kerncap.core.build.triton_compile import TritonCompile
from kerncap.core.code.arguments import as_arguments, difference, named_kernel
from kerncap.core.code.demangle import shown_names
from kerncap.core.code.reading import read_code_object
from kerncap.core.errors import Interrupted, KerncapError, UsageError, explained, unwritable
from kerncap.core.interrupts import interruptible
from kerncap.core.program.limits import MOST_SECONDS, too_long
from kerncap.core.units import size

_MOST_NAMES = 8  # of kernels that are told of
LIMIT_S = 600.0  # of one compile
_PLACE = re.compile(r"^(?P<lead>(?:In file included from |\s+from )?)(?P<path>[^:\n]+):(?P<line>\d+)", re.M)
_PLACE_EDG = re.compile(r"^(?P<path>[^(\n]+)\((?P<line>\d+)\)(?=: )", re.M)  # nvcc's own: path(line): error


class MisfitError(UsageError):
    """The variant compiles, and cannot take the captured kernel's place."""


@dataclass(frozen=True)
class Recompiled:
    """A rebuilt kernel: the object, the compiler's warnings (paths are the copies'), and seconds by step.

    `compiler` is what was started.
    """

    object: Path
    warnings: str
    seconds: dict[str, float]
    compiler: str


def recompile(
    directory: Path | str,
    output: Path | None = None,
    timeout_s: float = LIMIT_S,
    cancel: threading.Event | None = None,
) -> Recompiled:
    """Rebuild the variant in a reproducer to `output` (optimized.hsaco or .cubin in it): device only, for the
    captured target.

    The original command runs with its -O and defines, in the original directory where that is still there,
    with the copies (variant and deps/) laid over the original files. On a failure no older output is left
    that could be taken for the result. Raises CompileError (with the compiler's text), UsageError where there
    is no variant, MisfitError where it no longer defines the kernel as it was launched, DeviceError where
    there is no compiler.
    """
    directory = Path(os.path.abspath(directory))
    plan = CompileFile.read(directory)
    output = Path(os.path.abspath(output)) if output else directory / plan.output
    for copy in plan.files.values():
        if not (directory / copy).is_file():
            raise UsageError(
                f"{directory / copy} is gone: the kernel cannot be rebuilt. Extract again, or put it back."
            )
    try:
        return _build(directory, plan, output, timeout_s, cancel)
    except BaseException as error:
        with contextlib.suppress(OSError):
            output.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise unwritable(error.filename or output, error) from error
        raise


def _build(
    directory: Path, plan: CompileFile, output: Path, timeout_s: float, cancel: threading.Event | None
) -> Recompiled:
    started = time.perf_counter()
    compile_ = replace(_compile(directory, plan), timeout_s=timeout_s, cancel=cancel)
    try:
        compiled = compile_.build(output)
    except CompileError as error:
        text = show_copies(plan, error.output)
        gone = (
            ""
            if compile_.in_place
            else f" The program's tree ({plan.command.directory}) is gone, so the copies were used."
        )
        note = compile_.compiler.note
        # What is missing is not in the reproducer.
        told = not text or "by itself" in error.message
        if "KERNCAP_TRITON_PYTHON" in error.message:
            told, error.message = True, f"{error.message} {note}".rstrip()
        elif note and text:  # the mistake comes first; that another compiler found it may explain it
            text = f"{text.rstrip()}\n{note}\n"
        raise CompileError(
            error.message if told else f"{plan.variant} does not compile.{gone}", text
        ) from None
    _check(plan, output)
    seconds = {**compiled.seconds, "total": time.perf_counter() - started}
    words = " ".join(compile_.compiler.words)
    return Recompiled(output, show_copies(plan, compiled.output), seconds, words)


def _compile(directory: Path, plan: CompileFile) -> DeviceCompile | NvccCompile | TritonCompile:
    if plan.triton:
        return TritonCompile(directory, plan.command)
    if plan.cuda:
        copies = {original: directory / copy for original, copy in plan.files.items()}
        return NvccCompile.of(plan.command, plan.target, plan.symbol, copies)
    overlay = Overlay(directory / OVERLAY, directory / plan.variant)
    return DeviceCompile.of(plan.command, plan.target, plan.symbol, overlay)


def _check(plan: CompileFile, output: Path) -> None:
    """That the new object has the captured kernel, taking the same arguments."""
    made = read_code_object(output)
    if plan.symbol not in made.kernel_names:
        wanted, *others = shown_names([plan.symbol, *made.kernel_names[:_MOST_NAMES]])
        more = len(made.kernel_names) - len(others)
        names = ", ".join(others) + (f" and {more} more" if more else "") if others else "no kernel at all"
        raise MisfitError(
            f"{plan.variant} no longer defines {wanted}; it defines {names}. Keep the kernel's name, "
            "template arguments and "
            "parameter types as they were."
        )
    if layout_of(made.kernel(plan.symbol)) != plan.layout:
        mine = named_kernel(made, plan.symbol).explicit_arguments
        raise MisfitError(
            f"The variant's kernel takes other arguments than the captured one: "
            f"{difference(mine, as_arguments(plan.layout))}. The captured arguments cannot be given to it: "
            "keep the parameters as they were."
        )


def show_copies(plan: CompileFile, text: str) -> str:
    """Compiler output with the original paths replaced by the copies that were really compiled."""

    def swap(match: re.Match[str]) -> str:
        copy = plan.copy_of(match["path"])
        return f"{match['lead']}{copy or match['path']}:{match['line']}"

    def swap_edg(match: re.Match[str]) -> str:
        copy = plan.copy_of(match["path"])
        return f"{copy or match['path']}({match['line']})"

    return _PLACE_EDG.sub(swap_edg, _PLACE.sub(swap, text))


def _limit(arguments: Sequence[str]) -> tuple[float | None, list[str]]:
    """The limit, and the other words; None where what follows --timeout is no number of seconds. UsageError
    where it is too many.
    """
    words = list(arguments)
    if "--timeout" not in words:
        return LIMIT_S, words
    at = words.index("--timeout")
    try:
        limit = float(words[at + 1])
    except (ValueError, IndexError):
        return None, words
    if MOST_SECONDS < limit < math.inf:
        raise UsageError(too_long(f"--timeout {words[at + 1]}"))
    return limit if 0 < limit < math.inf else None, words[:at] + words[at + 2 :]


def main(arguments: Sequence[str]) -> int:
    """`python -m kerncap.cli.recompile [--timeout S] DIR [OUTPUT]`. Returns the exit code, with which the
    process is to end; messages go to stderr.
    """
    try:
        limit, words = _limit(arguments)
        if limit is None or not 1 <= len(words) <= 2 or words[0].startswith("-"):
            raise UsageError(
                "usage: python -m kerncap.cli.recompile [--timeout S] DIR [OUTPUT]   "
                f"(DIR holds {NAME}; a compile takes S seconds at most: {LIMIT_S:g})"
            )
        with interruptible(last=True):
            made = recompile(Path(words[0]), Path(words[1]) if len(words) > 1 else None, limit)
    except KerncapError as error:
        output = getattr(error, "output", "")
        print(f"{output.rstrip()}\n{error.message}" if output else error.message, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return Interrupted.exit_code
    except Exception as error:
        known = explained(error)
        if known is None:
            raise
        print(known.message, file=sys.stderr)
        return known.exit_code
    if made.warnings.strip():
        print(made.warnings.rstrip(), file=sys.stderr)
    steps = ", ".join(f"{name} {value:.2f} s" for name, value in made.seconds.items() if name != "total")
    print(
        f"{os.path.relpath(made.object)}: {size(made.object.stat().st_size)} in "
        f"{made.seconds['total']:.2f} s ({steps})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
