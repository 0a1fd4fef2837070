"""The configuration that a captured Triton kernel ran with, and where the reproducer's `pinned()` is another
by now.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from kerncap.core.build.compile_file import PRISTINE, VARIANT_TRITON
from kerncap.core.capture.reading import read_capture
from kerncap.core.triton import triton_record
from kerncap.core.triton.triton_launch import programs

# The options that are tuned; `pinned()` has them beside the constexprs.
TUNED_OPTIONS = ("num_warps", "num_stages", "waves_per_eu", "num_ctas", "maxnreg")
_GROUPS = ("constexprs", "options")  # whose names need no group before them


@dataclass(frozen=True)
class Change:
    """One entry of `pinned()` that is not as captured, as Python expressions; empty: there is none."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Pinned:
    """What ran: the grid in programs, constexprs and options as Python expressions, the tuned options first.

    `changes`: where `pinned()` in kernel_variant.py is another by now. `problem`: why that cannot be told.
    """

    grid: tuple[int, int, int]
    constexprs: dict[str, str]
    options: dict[str, str]
    changes: tuple[Change, ...] = ()
    problem: str = ""


def read_pinned(directory: Path) -> Pinned | None:
    """Of a reproducer; None where its kernel is none of Triton's. Raises DamagedCaptureError."""
    capture = read_capture(directory)
    record = triton_record.read(capture.path)
    if record is None:
        return None
    options = dict(record.row.get("options", {}))
    first = {name: options.pop(name) for name in TUNED_OPTIONS if name in options}
    constexprs = record.row.get("constexprs", {})
    declared = record.row.get("declared", ())
    changes, problem = pinned_changes(directory)
    return Pinned(
        programs(capture),
        {name: text for name, text in constexprs.items() if name in declared},
        first | options,
        changes,
        problem,
    )


def pinned_changes(directory: Path) -> tuple[tuple[Change, ...], str]:
    """`Pinned.changes` and `Pinned.problem` of a reproducer as it stands; none where it has no source."""
    texts = []
    for path in (directory / PRISTINE / VARIANT_TRITON, directory / VARIANT_TRITON):
        try:
            texts.append(path.read_text("utf-8"))
        except FileNotFoundError:
            return (), ""  # no source was kept
        except (OSError, ValueError) as error:
            return (), f"{path.name} cannot be read: {error}"
    try:
        before = entries(texts[0])
        after = entries(texts[1])
    except ValueError as error:
        return (), f"pinned() in {VARIANT_TRITON} cannot be read: {error}"
    names = list(before) + [name for name in after if name not in before]
    pairs = ((name, before.get(name, ""), after.get(name, "")) for name in names)
    return tuple(Change(*pair) for pair in pairs if pair[1] != pair[2]), ""


def entries(text: str) -> dict[str, str]:
    """The entries of the dictionary that `pinned()` returns, as expressions in one spelling.

    Raises ValueError where the text has no such function, or one that makes it in another way.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"{error.msg}, line {error.lineno}") from None
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "pinned"]
    if not functions:
        raise ValueError("there is no such function")
    last = functions[-1].body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Dict):
        raise ValueError("it does not end by returning a dictionary that is written out")
    found: dict[str, str] = {}
    for name, value in _pairs(last.value):
        if isinstance(value, ast.Dict):
            found |= {
                key if name in _GROUPS else f"{name}: {key}": ast.unparse(one) for key, one in _pairs(value)
            }
        else:
            found[name] = ast.unparse(value)
    return found


def _pairs(node: ast.Dict) -> list[tuple[str, ast.expr]]:
    found = []
    for key, value in zip(node.keys, node.values, strict=True):
        try:
            found.append((str(ast.literal_eval(key or "")), value))  # attributes: (0,), a path of arguments
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise ValueError("it does not end by returning a dictionary that is written out") from None
    return found
