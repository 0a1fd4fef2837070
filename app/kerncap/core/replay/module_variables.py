"""Module variables (`__device__`, `__constant__`) of a variant against those of the captured code object.

The replayer puts the captured value of a variable back by its name, where the size is the same. What cannot
be put back is said here: a value that would be lost is a UsageError, anything else a warning.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from kerncap.core.capture.captured_code import captured_code
from kerncap.core.capture.records import Capture
from kerncap.core.code.codeobject import CodeObject, CodeObjectError, Variable
from kerncap.core.code.cubin import Cubin
from kerncap.core.code.elf import SHT_NOBITS, SHT_RELA
from kerncap.core.errors import UsageError

_RELA = struct.Struct("<QQq")
_WORD = 8


def check_variables(capture: Capture, variant: CodeObject, path: Path) -> tuple[str, ...]:
    """Warnings on variables that the variant has otherwise than the captured code object.

    Raises UsageError where a variable held something else than its initial value when the kernel was
    captured, and there is no way to give that to the variant.
    """
    try:
        captured = captured_code(capture)
        mine = {v.name for v in captured.variables}
    except CodeObjectError:
        return ()  # nothing is known of it, and the replayer's own check of what was changed remains
    if captured.data == variant.data:
        return ()
    theirs = {v.name: v for v in variant.variables}
    if isinstance(captured, Cubin):
        return (*_of_cubin(capture, captured, theirs, path), *_added(theirs, mine))
    return (
        *_of_captured(capture, captured, theirs, path),
        *_added(theirs, mine),
    )


def _of_captured(
    capture: Capture, captured: CodeObject, theirs: dict[str, Variable], path: Path
) -> Iterator[str]:
    kernel_code = capture.dispatch.code_object
    named = {v.name for v in capture.variables if v.code_object == kernel_code}
    for mine in captured.variables:
        found = theirs.get(mine.name)
        by_name = mine.name in named
        if found is not None and found.size == mine.size and by_name:
            continue
        changed = _has_another_value(capture, captured, mine)
        if found is None:
            if by_name or changed:
                yield (
                    f"the variant has no module variable {mine.name} ({mine.size} bytes): what it held is "
                    "not there, and what the captured kernel writes to it cannot be compared"
                )
        elif changed:
            how = (
                f"has {found.size} bytes, {mine.size} were captured"
                if found.size != mine.size
                else "has no symbol that the loader knows (it is static)"
            )
            raise UsageError(
                f"{path}: the module variable {mine.name} {how}: the value that the program gave it cannot "
                "be put back. Keep its type and its linkage as they were"
            )
        elif found.size != mine.size and (by_name or mine.writable):
            yield (
                f"the module variable {mine.name} has {found.size} bytes in the variant, {mine.size} were "
                "captured: it starts with the value that the variant's code object gives it, and what the "
                "kernel writes to it cannot be compared"
            )


def _of_cubin(capture: Capture, captured: Cubin, theirs: dict[str, Variable], path: Path) -> Iterator[str]:
    kernel_code = capture.dispatch.code_object
    places = {v.name: v for v in capture.variables if v.code_object == kernel_code}
    for mine in captured.variables:
        found, place = theirs.get(mine.name), places.get(mine.name)
        if found is not None and found.size == mine.size:
            continue
        if found is None:
            yield (
                f"the variant has no module variable {mine.name} ({mine.size} bytes): what it held is not "
                "there, and what the captured kernel writes to it cannot be compared"
            )
            continue
        try:
            now = capture.before(place.address, place.bytes).tobytes() if place is not None else None
        except KeyError:
            now = None
        if now != captured.initial(mine.name):
            raise UsageError(
                f"{path}: the module variable {mine.name} has {found.size} bytes, {mine.size} were captured: "
                "the value that the program gave it cannot be put back. Keep its type as it was"
            )
        yield (
            f"the module variable {mine.name} has {found.size} bytes in the variant, {mine.size} were "
            "captured: it starts with the value that the variant's code gives it, and what the kernel writes "
            "to it cannot be compared"
        )


def _added(theirs: dict[str, Variable], mine: set[str]) -> Iterator[str]:
    for name, found in theirs.items():
        if name not in mine and (found.writable or not found.local):
            yield (
                f"the module variable {name} ({found.size} bytes) is not in the captured code object: it "
                "starts with the value that the variant's code object gives it"
            )


def _has_another_value(capture: Capture, code: CodeObject, variable: Variable) -> bool:
    """Whether it held another value before the dispatch than its code object gives it; True where that is
    not known. Words that the loader relocates do not count.
    """
    loaded = capture.code_object.load_delta + variable.address
    try:
        now = bytearray(capture.before(loaded, variable.size).tobytes())
    except KeyError:
        return True
    initial = _initial(code, variable)
    for offset in _relocated(code):
        at = offset - variable.address
        if 0 <= at < variable.size:
            now[at : at + _WORD] = initial[at : at + _WORD] = bytes(min(_WORD, variable.size - at))
    return now != initial


def _initial(code: CodeObject, variable: Variable) -> bytearray:
    for section in code.elf.sections:
        at = variable.address - section.address
        if section.address and at >= 0 and at + variable.size <= section.size:
            if section.kind == SHT_NOBITS:
                continue
            return bytearray(code.elf.content(section)[at : at + variable.size])
    return bytearray(variable.size)


def _relocated(code: CodeObject) -> Iterator[int]:
    """Addresses of the words that dynamic relocations set (ELF-64: Elf64_Rela)."""
    for section in code.elf.sections:
        if section.kind == SHT_RELA and section.address:
            data = code.elf.content(section)
            whole = data[: len(data) // _RELA.size * _RELA.size]
            yield from (offset for offset, _, _ in _RELA.iter_unpack(whole))
