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
_LZ4_RATIO = (
    255  # at most: each byte that continues a length stands for 255 (LZ4 block format, "Data Blocks")
)
_MOST_BYTES = 1 << 32  # a header that claims more is damaged, not large


@dataclass(frozen=True)
class FatEntry:
    """A cubin (or PTX: `ptx`; or what link-time optimization makes code of: `ir`) in a file at `offset`.
    `data` is None where it is compressed in a way that is not read here.
    """

    ptx: bool
    arch: str
    offset: int
    data: memoryview | None
    compressed: bool
    ir: bool = False


def is_fatbin(data: memoryview) -> bool:
    """Whether these bytes begin a fat binary of CUDA's."""
    return bytes(data[:4]) == MAGIC


def has_fatbin(data: memoryview, name: str) -> bool:
    """Whether this is one, or a file of the host with some in it."""
    if is_fatbin(data):
        return True
    return bytes(data[:4]) == ELF_MAGIC and any(Elf(data, name).section(section) for section in SECTIONS)


def fat_entries(data: memoryview, name: str) -> Iterator[FatEntry]:
    """The cubins and PTX of a file, in its order. Raises CodeObjectError on a damaged container."""
    if is_fatbin(data):
        yield from _containers(data, 0, name)
        return
    for section in Elf(data, name).sections:
        if section.name in SECTIONS and section.size:
            content = data[section.offset : section.offset + section.size]
            yield from _containers(content, section.offset, f"{name} ({section.name})")


def _containers(data: memoryview, base: int, name: str) -> Iterator[FatEntry]:
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
        yield from _of_container(data[:end], at + header, base, name)
        at = end


def _of_container(data: memoryview, at: int, base: int, name: str) -> Iterator[FatEntry]:
    while at + _ENTRY.size <= len(data):
        kind, _, header, size, packed, _, _, _, arch, _, _, flags, _, whole = _ENTRY.unpack_from(data, at)
        end = at + header + size
        if header < _ENTRY.size or end > len(data):
            raise CodeObjectError(f"{name}: the entry at {base + at} of the fat binary is cut short.")
        if kind in (_PTX, _CUBIN):
            content: memoryview | None = data[at + header : end]
            if whole:
                content = _unpacked(data[at + header : at + header + packed], whole, flags, name)
            elif kind == _PTX:
                content = memoryview(bytes(data[at + header : end]).strip(b"\0\n"))
            yield FatEntry(kind == _PTX, f"sm_{arch}", base + at + header, content, bool(whole))
        elif kind == _IR:
            yield FatEntry(False, f"sm_{arch}", base + at + header, None, bool(whole), ir=True)
        at = end


def _unpacked(data: memoryview, size: int, flags: int, name: str) -> memoryview | None:
    if not flags & (_LZ4 | _ZSTD):
        return None
    damaged = f"{name}: an entry of the fat binary is damaged"
    most = min(_MOST_BYTES, len(data) * _LZ4_RATIO) if flags & _LZ4 else _MOST_BYTES
    if size > most:
        raise CodeObjectError(f"{damaged}: it claims {size} bytes.")
    try:
        content = _decompressed(data, size, bool(flags & _LZ4))
    except (lz4.block.LZ4BlockError, zstandard.ZstdError) as error:
        raise CodeObjectError(f"{damaged}: {error}.") from error
    if content is None or len(content) != size:
        raise CodeObjectError(f"{damaged}: it holds other than the {size} bytes that it claims.")
    return memoryview(content.rstrip(b"\0") if content[:4] != ELF_MAGIC else content)


def _decompressed(data: memoryview, size: int, is_lz4: bool) -> bytes | None:
    """None: it says itself that it holds another number of bytes."""
    if is_lz4:
        content: bytes = lz4.block.decompress(data, uncompressed_size=size)
        return content
    if zstandard.frame_content_size(data) not in (-1, size):
        return None
    return zstandard.ZstdDecompressor().decompress(bytes(data), max_output_size=size)
