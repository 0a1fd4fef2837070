"""The parts of ELF64 that code objects need: sections, symbols and notes, straight from mapped bytes.

pyelftools reads symbol by symbol through file objects; a GPU library holds hundreds of objects with thousands
of symbols each, so these tables are unpacked in one go here. DWARF is left to pyelftools
(kerncap.core.code.dwarf).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kerncap.core.errors import UsageError

ELF_MAGIC = b"\x7fELF"
SHT_SYMTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 4, 7, 8, 11
STT_OBJECT, STT_FUNC = 1, 2
STB_LOCAL = 0
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class CodeObjectError(UsageError):
    """A file that is not what it should be: not a code object, cut short, damaged, or of a format that is not
    read.
    """


@dataclass(frozen=True)
class Section:
    """A section header. `kind` is sh_type, `offset` is in the file."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class Symbol:
    """A symbol. `section` is its section's index (0: undefined); `binding` is 0 local, 1 global, 2 weak."""

    name: str
    kind: int
    binding: int
    section: int
    value: int
    size: int


class Elf:
    """An ELF64 little-endian file in memory. Raises CodeObjectError where it is not one, or its tables point
    outside it.
    """

    def __init__(self, data: memoryview, name: str) -> None:
        self.data = data
        self.name = name
        if len(data) < 64 or bytes(data[:4]) != ELF_MAGIC:
            raise CodeObjectError(f"{name} is no ELF file.")
        if data[4] != 2 or data[5] != 1:
            raise CodeObjectError(f"{name} is not a 64-bit little-endian ELF file.")
        self.abi, self.abi_version = data[7], data[8]
        self.type, self.machine = struct.unpack_from("<HH", data, 16)
        (self.flags,) = struct.unpack_from("<I", data, 48)

    @cached_property
    def sections(self) -> list[Section]:
        """All section headers, the empty first one included."""
        (table,) = struct.unpack_from("<Q", self.data, 40)
        size, count, names = struct.unpack_from("<HHH", self.data, 58)
        if table == 0:
            return []
        if size != _SECTION.size or table + size * max(count, 1) > len(self.data):
            raise CodeObjectError(
                f"{self.name}: the section table at {table} is outside the file: it is cut short or damaged."
            )
        rows = [_SECTION.unpack_from(self.data, table + size * i) for i in range(count)]
        if names == 0xFFFF:
            names = rows[0][6]
        strings = (
            self._bytes(rows[names][4], rows[names][5], "section names")
            if names < len(rows)
            else memoryview(b"")
        )
        return [Section(_string(strings, r[0]), r[1], r[2], r[3], r[4], r[5], r[6]) for r in rows]

    def content(self, section: Section) -> memoryview:
        """The bytes of a section; nothing for one that takes no room in the file."""
        if section.kind == SHT_NOBITS:
            return memoryview(b"")
        return self._bytes(section.offset, section.size, section.name)

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((s for s in self.sections if s.name == name), None)

    @cached_property
    def symbols(self) -> list[Symbol]:
        """The symbols of .symtab, or of .dynsym where the file is stripped."""
        tables = [s for s in self.sections if s.kind in (SHT_SYMTAB, SHT_DYNSYM)]
        if not tables:
            return []
        table = min(tables, key=lambda s: s.kind)
        if table.link >= len(self.sections):
            raise CodeObjectError(f"{self.name}: the symbol table's strings are missing: it is damaged.")
        strings = self.content(self.sections[table.link])
        data = self.content(table)
        rows = _SYMBOL.iter_unpack(data[: len(data) // _SYMBOL.size * _SYMBOL.size])
        return [Symbol(_string(strings, r[0]), r[1] & 15, r[1] >> 4, r[3], r[4], r[5]) for r in rows]

    def notes(self) -> Iterator[tuple[str, int, memoryview]]:
        """(owner, type, content) of every note."""
        for section in self.sections:
            if section.kind != SHT_NOTE:
                continue
            data, at = self.content(section), 0
            while at + 12 <= len(data):
                owner_size, size, kind = struct.unpack_from("<III", data, at)
                owner_end = at + 12 + owner_size
                start = (owner_end + 3) & ~3
                if start + size > len(data):
                    raise CodeObjectError(
                        f"{self.name}: a note of {size} bytes does not fit its section: it is damaged."
                    )
                owner = bytes(data[at + 12 : owner_end]).rstrip(b"\0").decode("utf-8", "replace")
                yield owner, kind, data[start : start + size]
                at = (start + size + 3) & ~3

    def at_address(self, address: int, size: int) -> memoryview | None:
        """The bytes that are loaded at a virtual address, or None where no section of the file holds them."""
        for section in self.sections:
            inside = section.address <= address and address + size <= section.address + section.size
            if section.kind != SHT_NOBITS and section.address and inside:
                start = section.offset + address - section.address
                return self._bytes(start, size, section.name)
        return None

    def _bytes(self, offset: int, size: int, what: str) -> memoryview:
        if offset + size > len(self.data):
            raise CodeObjectError(
                f"{self.name}: {what} ends at byte {offset + size} of {len(self.data)}: the file is cut "
                "short."
            )
        return self.data[offset : offset + size]


def _string(table: memoryview, offset: int) -> str:
    if offset >= len(table):
        return ""
    # Mangled names of templates reach kilobytes; grow the window instead of copying the whole table each
    # time.
    step = 256
    while True:
        window = bytes(table[offset : offset + step])
        end = window.find(b"\0")
        if end >= 0 or offset + step >= len(table):
            return window[: end if end >= 0 else None].decode("utf-8", "replace")
        step *= 4
