"""CUDA's fat binaries: what `nvcc -fatbin` writes, and the sections of objects, programs and libraries.

A container is a header (magic, version, its own size, the size of what follows) and entries, one after the
other: each a header of its own and a cubin or PTX, as it is or compressed. NVIDIA does not document it; this
is what nvcc 13.0 was seen to write, which compresses by zstd or, as older ones do, by LZ4. What is compressed
in another way is told of, and cuobjdump unpacks it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import lz4.block
import zstandard

from kerncap.core.code.elf import ELF_MAGIC, CodeObjectError, Elf

MAGIC = b"\x50\xed\x55\xba"
SECTIONS = (".nv_fatbin", "__nv_relfatbin")  # the second: of objects whose device code is linked later
_CONTAINER = struct.Struct("<4sHHQ")
# kind, version, header size, payload size, compressed size, options, minor, major, arch, name offset and
# size, flags, zero, size after decompression.
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_PTX, _CUBIN, _IR = 1, 2, 8
_LZ4, _ZSTD = 0x2000, 0x8000
# At most: each byte that continues a length stands for 255 (LZ4 block format, "Data Blocks").
_LZ4_RATIO = 255
# A few kilobytes can claim, and hold, gigabytes of zeros. The largest libraries there are unpack to some
# gigabytes in all, in entries of megabytes.
_MOST_OF_ENTRY = 1 << 30  # LZ4 itself takes less than 2^31
_MOST_OF_FILE = 4 << 30


@dataclass(frozen=True)
class FatEntry:
    """A cubin (or PTX: `ptx`; or what link-time optimization makes code of: `ir`) in a file at `offset`.
    `data` is None where it is not asked for, or compressed in a way that is not read here (`readable`).
    """

    ptx: bool
    arch: str
    offset: int
    data: memoryview | None
    compressed: bool
    ir: bool = False
    readable: bool = True


def is_fatbin(data: memoryview) -> bool:
    """Whether these bytes begin a fat binary of CUDA's."""
    return bytes(data[:4]) == MAGIC


def has_fatbin(data: memoryview, name: str) -> bool:
    """Whether this is one, or a file of the host with some in it."""
    if is_fatbin(data):
        return True
    return bytes(data[:4]) == ELF_MAGIC and any(Elf(data, name).section(section) for section in SECTIONS)


def fat_entries(data: memoryview, name: str, *, ptx: bool) -> Iterator[FatEntry]:
    """The cubins and PTX of a file, in its order, with the `data` of one of the two: `ptx`, or the cubins.

    Raises CodeObjectError on a damaged container, and where more would be unpacked than any file holds.
    """
    unpacking = _Unpacking(_PTX if ptx else _CUBIN)
    if is_fatbin(data):
        yield from _containers(data, 0, name, unpacking)
        return
    for section in Elf(data, name).sections:
        if section.name in SECTIONS and section.size:
            content = data[section.offset : section.offset + section.size]
            yield from _containers(content, section.offset, f"{name} ({section.name})", unpacking)


@dataclass
class _Unpacking:
    """What of a file is unpacked: entries of one kind, and so many bytes of them until now."""

    kind: int
    done: int = 0

    def count(self, size: int, entry: str) -> None:
        """Before `size` more bytes are unpacked."""
        self.done += size
        if self.done > _MOST_OF_FILE:
            raise CodeObjectError(
                f"{entry} claims {size} bytes, and with it the file holds {self.done} of this kind: "
                f"at most {_MOST_OF_FILE} bytes of a file are unpacked. It is damaged, or made to be large."
            )


def _containers(data: memoryview, base: int, name: str, unpacking: _Unpacking) -> Iterator[FatEntry]:
    """Containers one after the other, with zeros between them."""
    at = 0
    while at + _CONTAINER.size <= len(data):
        magic, _, header, size = _CONTAINER.unpack_from(data, at)
        if magic != MAGIC:
            rest = bytes(data[at : at + 4096])
            step = len(rest) - len(rest.lstrip(b"\0"))
            if not step:
                return
            at += step - step % 4 or step
            continue
        end = at + header + size
        if header < _CONTAINER.size or end > len(data):
            raise CodeObjectError(
                f"{name}: the fat binary at {base + at} ends at {base + end}, after the end of its file: "
                "it is cut short."
            )
        yield from _of_container(data[:end], at + header, base, name, unpacking)
        at = end


def _of_container(
    data: memoryview, at: int, base: int, name: str, unpacking: _Unpacking
) -> Iterator[FatEntry]:
    while at + _ENTRY.size <= len(data):
        kind, _, header, size, packed, _, _, _, arch, _, _, flags, _, whole = _ENTRY.unpack_from(data, at)
        end = at + header + size
        if header < _ENTRY.size or end > len(data):
            raise CodeObjectError(f"{name}: the entry at {base + at} of the fat binary is cut short.")
        if kind in (_PTX, _CUBIN):
            readable = not whole or bool(flags & (_LZ4 | _ZSTD))
            content: memoryview | None = None
            if kind == unpacking.kind and readable:
                content = data[at + header : end]
                entry = f"{name}: the entry at {base + at} of the fat binary"
                if whole:
                    content = _unpacked(content[:packed], whole, flags, entry, unpacking)
                elif kind == _PTX:
                    content = memoryview(bytes(content).strip(b"\0\n"))
            yield FatEntry(
                kind == _PTX, f"sm_{arch}", base + at + header, content, bool(whole), readable=readable
            )
            del content  # before the next one is unpacked
        elif kind == _IR:
            yield FatEntry(False, f"sm_{arch}", base + at + header, None, bool(whole), ir=True)
        at = end


def _unpacked(data: memoryview, size: int, flags: int, entry: str, unpacking: _Unpacking) -> memoryview:
    most = min(_MOST_OF_ENTRY, len(data) * _LZ4_RATIO) if flags & _LZ4 else _MOST_OF_ENTRY
    if size > most:
        raise CodeObjectError(
            f"{entry} is damaged: it claims {size} bytes, and can be {most} at most when it is unpacked."
        )
    unpacking.count(size, entry)
    try:
        content = _decompressed(data, size, bool(flags & _LZ4))
    except (lz4.block.LZ4BlockError, zstandard.ZstdError, MemoryError) as error:
        raise CodeObjectError(
            f"{entry} cannot be unpacked to the {size} bytes that it claims, it is damaged: "
            f"{error or 'there is no memory for it'}."
        ) from error
    if content is None or len(content) != size:
        raise CodeObjectError(f"{entry} is damaged: it holds other than the {size} bytes that it claims.")
    return memoryview(content.rstrip(b"\0") if content[:4] != ELF_MAGIC else content)


def _decompressed(data: memoryview, size: int, is_lz4: bool) -> bytes | None:
    """None: it says itself that it holds another number of bytes."""
    if is_lz4:
        content: bytes = lz4.block.decompress(data, uncompressed_size=size)
        return content
    if zstandard.frame_content_size(data) not in (-1, size):
        return None
    return zstandard.ZstdDecompressor().decompress(bytes(data), max_output_size=size)
