"""How the arguments of a variant's kernel differ from those that were captured, in words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kerncap.core.code.codeobject import Argument, CodeObject, CodeObjectError, Kernel


def named_kernel(code: CodeObject, symbol: str) -> Kernel:
    """A kernel of a code object, its arguments named by debug information where the metadata names none."""
    kernel = code.kernel(symbol)
    if code.has_debug_info and not all(argument.name for argument in kernel.explicit_arguments):
        from kerncap.core.code.dwarf import parameters_by_kernel, with_names  # takes long to import

        with suppress(CodeObjectError):
            kernel = with_names(kernel, parameters_by_kernel(code).get(kernel.name, ()))
    return kernel


def as_arguments(layout: Sequence[tuple[int, int]]) -> tuple[Argument, ...]:
    """(offset, size) pairs, of which nothing else is known, as arguments."""
    return tuple(Argument(offset, size, "") for offset, size in layout)


def argument_text(argument: Argument) -> str:
    """ "int extra at offset 48 (4 bytes)"; without names "4 bytes at offset 48"."""
    name = f"{argument.type_name} {argument.name.removesuffix('.coerce')}".strip()
    if not name:
        return f"{argument.size} bytes at offset {argument.offset}"
    return f"{name} at offset {argument.offset} ({argument.size} bytes)"


def difference(new: Sequence[Argument], old: Sequence[Argument]) -> str:
    """Where two lists of explicit arguments part by offset or size; empty where they do not."""
    same = 0
    while same < min(len(new), len(old)) and _place(new[same]) == _place(old[same]):
        same += 1
    if same == len(new) == len(old):
        return ""
    count = len(new) - len(old)
    text = ""
    if count:
        number = "one argument" if abs(count) == 1 else f"{abs(count)} arguments"
        text = f"{number} {'more' if count > 0 else 'less'}"
    if same == len(old):
        return f"{text}: {', '.join(argument_text(a) for a in new[same:])}"
    if same == len(new):
        return f"{text}: {', '.join(argument_text(a) for a in old[same:])} was captured"
    place = f"argument {same + 1} is {argument_text(new[same])}, captured was {argument_text(old[same])}"
    return f"{text}; {place}" if text else place


def _place(argument: Argument) -> tuple[int, int]:
    return argument.offset, argument.size
