"""Arguments of a kernel, for simulator and host alike: arrays, scalars, structures, tables of pointers."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray


@dataclass(eq=False)
class Table:
    """Memory that holds pointers: `data` with the address of `pointers[offset]` at each byte offset."""

    data: Array
    pointers: dict[int, Array | Table]


@dataclass(eq=False)
class Struct:
    """A structure passed by value: members at their natural alignment, itself aligned as its widest."""

    members: list[Argument]


Scalar = np.generic
Argument = Array | Table | Struct | Scalar


def table(entries: list[Array | Table]) -> Table:
    """A table of pointers, one after the other."""
    return Table(np.zeros(len(entries), np.uint64), {8 * i: e for i, e in enumerate(entries)})


def _alignment(argument: Argument) -> int:
    if isinstance(argument, Struct):
        return max(_alignment(m) for m in argument.members)
    if isinstance(argument, (np.ndarray, Table)):
        return 8
    return argument.dtype.itemsize


def flatten(arguments: list[Argument], offset: int = 0) -> list[tuple[int, Array | Table | Scalar]]:
    """(byte offset in the kernarg segment, argument) with structures taken apart."""
    flat: list[tuple[int, Array | Table | Scalar]] = []
    for argument in arguments:
        align = _alignment(argument)
        offset = -(-offset // align) * align
        if isinstance(argument, Struct):
            inner = flatten(argument.members, offset)
            flat += inner
            last, value = inner[-1]
            end = last + (8 if isinstance(value, (np.ndarray, Table)) else value.dtype.itemsize)
            offset = -(-end // align) * align
        else:
            flat.append((offset, argument))
            offset += 8 if isinstance(argument, (np.ndarray, Table)) else argument.dtype.itemsize
    return flat


def buffers(arguments: list[Argument]) -> list[Array | Table]:
    """Every array and table that the arguments reach, each once, in order of first appearance."""
    seen: list[Array | Table] = []

    def visit(item: Array | Table) -> None:
        if any(item is s for s in seen):
            return
        seen.append(item)
        if isinstance(item, Table):
            for target in item.pointers.values():
                visit(target)

    for _, argument in flatten(arguments):
        if isinstance(argument, (np.ndarray, Table)):
            visit(argument)
    return seen


@dataclass
class HostMemory:
    """Copies of the buffers, with host addresses in tables and in the kernarg bytes."""

    arguments: list[Argument]
    copies: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._items = buffers(self.arguments)
        for item in self._items:
            source = item.data if isinstance(item, Table) else item
            raw = np.zeros(source.nbytes + 64, np.uint8)
            start = -raw.ctypes.data % 64
            copy = raw[start : start + source.nbytes].view(source.dtype).reshape(source.shape)
            copy[...] = source
            self.copies.append(copy)
        for item, copy in zip(self._items, self.copies, strict=False):
            if isinstance(item, Table):
                flat = copy.reshape(-1).view(np.uint8)
                for offset, target in item.pointers.items():
                    flat[offset : offset + 8] = np.frombuffer(
                        struct.pack("<Q", self.address(target)), np.uint8
                    )

    def address(self, item: Array | Table) -> int:
        index = next(i for i, s in enumerate(self._items) if s is item)
        return int(self.copies[index].ctypes.data)

    def kernarg(self) -> bytes:
        out = bytearray()
        for offset, argument in flatten(self.arguments):
            out += bytes(offset - len(out))
            if isinstance(argument, (np.ndarray, Table)):
                out += struct.pack("<Q", self.address(argument))
            else:
                out += argument.tobytes()
        return bytes(out)


def run_on_host(library: ctypes.CDLL, kernel: str, memory: HostMemory, grid: tuple, block: tuple) -> None:
    """Runs a kernel of a compile_host() library on `memory`, in place."""
    triple = ctypes.c_uint32 * 3
    run = getattr(library, f"run_{kernel}")
    run(ctypes.create_string_buffer(memory.kernarg() + bytes(16)), triple(*grid), triple(*block))
