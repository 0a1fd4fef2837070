"""Containers of code objects: clang offload bundles, compressed bundles, and the fat binaries inside ELF
files.

Formats, from LLVM's documentation (ClangOffloadBundler, "Bundled Binary File Layout" and "Compressed Offload
Bundles"): a bundle is a table of (offset, size, target id) and the entries' bytes; a compressed one ("CCOB")
is a header and a zlib or zstd stream that holds a bundle. HIP puts one bundle a translation unit into
`.hip_fatbin`, one after the other. Nothing is decompressed or read before it is asked for.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

from kerncap.core.code.elf import ELF_MAGIC, CodeObjectError, Elf, Section
from kerncap.core.errors import UsageError, unreadable
from kerncap.core.files import A_FILE, what_is

BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC = b"CCOB"
FATBIN_SECTIONS = (".hip_fatbin", ".hipFatBin")
_METHOD_ZLIB, _METHOD_ZSTD = 0, 1
_MAX_UNCOMPRESSED = 1 << 34  # 16 GiB: a header that claims more is damaged, not large


@dataclass(frozen=True)
class Entry:
    """One code object in a file: its target id ("amdgcn-amd-amdhsa--gfx942:xnack-"), where it is, and its
    bytes.

    `offset` counts from the start of the container: the file, or the decompressed bundle (`compressed` is
    true then).
    """

    target: str
    offset: int
    size: int
    data: memoryview
    compressed: bool = False


def open_bytes(path: Path) -> memoryview:
    """The bytes of a file, mapped read-only, so that a library of gigabytes costs only what is looked at.

    Raises CodeObjectError where the file cannot be read or is empty.
    """
    try:
        found = what_is(path)
    except UsageError as error:
        raise CodeObjectError(error.message) from None
    if found != A_FILE:
        raise CodeObjectError(
            f"{path} {f'is {found}' if found else 'does not exist'}: no code object to read."
        )
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as stream:
            info = os.fstat(stream.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_size == 0:  # it has become another meanwhile
                raise CodeObjectError(f"{path} is no file with something in it: no code object to read.")
            return memoryview(mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ))
    except OSError as error:
        raise unreadable(path, error, CodeObjectError, ".") from error


def is_amdgpu(data: memoryview) -> bool:
    """Whether these bytes begin an AMDGPU ELF file."""
    return len(data) >= 64 and bytes(data[:4]) == ELF_MAGIC and int.from_bytes(data[18:20], "little") == 224


def entries(data: memoryview, name: str) -> Iterator[Entry]:
    """Every AMDGPU code object in a file's bytes, in file order; `name` is for messages.

    The file may be a code object, a bundle, a compressed bundle, or an ELF file with fat binaries in it. Host
    entries and empty ones are left out. Raises CodeObjectError on a file of another kind or a damaged table.
    """
    head = bytes(data[: len(BUNDLE_MAGIC)])
    if is_amdgpu(data):
        yield Entry("", 0, len(data), data)
    elif head == BUNDLE_MAGIC or head.startswith(COMPRESSED_MAGIC):
        yield from _bundles(data, name)
    elif head.startswith(ELF_MAGIC):
        sections = fatbin_sections(data, name)
        if not sections:
            raise CodeObjectError(
                f"{name} is an ELF file of the host without code for a GPU (.hip_fatbin, .nv_fatbin): "
                "no code object in it."
            )
        for section in sections:
            content = data[section.offset : section.offset + section.size]
            if is_amdgpu(content):  # clang puts a lone code object there as it is
                yield Entry("", section.offset, len(content), content)
            else:
                yield from _bundles(content, f"{name} ({section.name})")
    else:
        raise CodeObjectError(
            f"{name} is no code object, offload bundle or ELF file: it starts with the bytes "
            f"{head[:8].hex(' ')}. "
            "Give a .hsaco or .cubin, a fat binary, or a program or library that has one."
        )


def fatbin_sections(data: memoryview, name: str) -> list[Section]:
    """The sections of a host ELF file that hold bundles."""
    return [s for s in Elf(data, name).sections if s.name in FATBIN_SECTIONS and s.size and s.kind != 8]


def write_bundle(objects: list[tuple[str, bytes]], align: int = 4096) -> bytes:
    """An uncompressed bundle of (entry id, bytes) pairs, as clang-offload-bundler lays it out."""
    table = len(BUNDLE_MAGIC) + 8 + sum(24 + len(ident.encode()) for ident, _ in objects)
    head, body = bytearray(BUNDLE_MAGIC + struct.pack("<Q", len(objects))), bytearray()
    for ident, content in objects:
        body += b"\0" * (-(table + len(body)) % align)
        encoded = ident.encode()
        head += struct.pack("<QQQ", table + len(body), len(content), len(encoded)) + encoded
        body += content
    return bytes(head + body)


def _bundles(data: memoryview, name: str) -> Iterator[Entry]:
    """Bundles one after the other, with padding between them."""
    position, found = 0, False
    while position < len(data):
        rest = data[position:]
        if bytes(rest[:4]) == COMPRESSED_MAGIC:
            content, used = decompress(rest, f"{name} at offset {position}")
            found = True
            yield from (
                Entry(e.target, e.offset, e.size, e.data, True) for e in _table(memoryview(content), name)[0]
            )
            position += used
        elif bytes(rest[: len(BUNDLE_MAGIC)]) == BUNDLE_MAGIC:
            table, used = _table(rest, f"{name} at offset {position}")
            found = True
            yield from (Entry(e.target, position + e.offset, e.size, e.data) for e in table)
            position += used
        else:
            step = _next_bundle(rest)
            if step is None:
                break
            position += step
    if not found:
        raise CodeObjectError(
            f"{name} holds no offload bundle, although its name says so: it is damaged or stripped."
        )


def _next_bundle(data: memoryview) -> int | None:
    """How far the next bundle is; padding is zeros, so that code that happens to spell a magic is not taken
    for one.
    """
    chunk = 1 << 16
    for start in range(0, len(data), chunk):
        block = bytes(data[start : start + chunk])
        stripped = block.lstrip(b"\0")
        if stripped:
            offset = start + len(block) - len(stripped)
            at = bytes(data[offset : offset + len(BUNDLE_MAGIC)])
            return offset if at == BUNDLE_MAGIC or at[:4] == COMPRESSED_MAGIC else None
    return None


def _table(data: memoryview, name: str) -> tuple[list[Entry], int]:
    """The device entries of one uncompressed bundle, and how many bytes it takes."""
    at = len(BUNDLE_MAGIC)
    if bytes(data[:at]) != BUNDLE_MAGIC:
        raise CodeObjectError(f"{name}: no bundle where one should be.")
    try:
        (count,) = struct.unpack_from("<Q", data, at)
        at += 8
        if count > 1 << 16:
            raise CodeObjectError(f"{name}: the bundle claims {count} entries: it is damaged.")
        rows: list[tuple[int, int, str]] = []
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", data, at)
            at += 24
            if length > 4096 or at + length > len(data):
                raise CodeObjectError(f"{name}: an entry id of {length} bytes: the bundle is damaged.")
            rows.append((offset, size, bytes(data[at : at + length]).decode("utf-8", "replace")))
            at += length
    except struct.error as error:
        raise CodeObjectError(f"{name}: the bundle's table is cut short at byte {len(data)}.") from error
    end, found = at, []
    for offset, size, ident in rows:
        if offset + size > len(data):
            raise CodeObjectError(
                f"{name}: the entry {ident} ends at {offset + size}, after the end of the bundle at "
                f"{len(data)}: it is cut short."
            )
        end = max(end, offset + size)
        content = data[offset : offset + size]
        if size and not ident.startswith("host") and is_amdgpu(content):
            found.append(Entry(target_of(ident), offset, size, content))
    return found, end


def target_of(ident: str) -> str:
    """The target id in a bundle entry id: "hipv4-amdgcn-amd-amdhsa--gfx942:xnack-" gives
    "amdgcn-amd-amdhsa--gfx942:xnack-".
    """
    _, _, rest = ident.partition("-")
    # Before hipv4 the triple had three parts only: "hip-amdgcn-amd-amdhsa-gfx906".
    if rest.startswith("amdgcn-amd-amdhsa-gfx"):
        return "amdgcn-amd-amdhsa--" + rest.removeprefix("amdgcn-amd-amdhsa-")
    return rest


def decompress(data: memoryview, name: str) -> tuple[bytes, int]:
    """The bundle in a "CCOB" blob of version 1, 2 or 3, and the bytes that the blob takes.

    Raises CodeObjectError on another version or method, a stream cut short, or a size or hash that does not
    agree.
    """
    try:
        version, method = struct.unpack_from("<HH", data, 4)
        total = 0
        if version == 1:
            size, digest = struct.unpack_from("<IQ", data, 8)
            header = 20
        elif version == 2:
            total, size, digest = struct.unpack_from("<IIQ", data, 8)
            header = 24
        elif version == 3:
            total, size, digest = struct.unpack_from("<QQQ", data, 8)
            header = 32
        else:
            raise CodeObjectError(
                f"{name}: a compressed bundle of version {version}; versions 1, 2 and 3 are read."
            )
    except struct.error as error:
        raise CodeObjectError(f"{name}: the header of the compressed bundle is cut short.") from error
    if total and not header < total <= len(data):
        raise CodeObjectError(
            f"{name}: the compressed bundle should have {total} bytes, {len(data)} are there: it is cut "
            "short."
        )
    if size > _MAX_UNCOMPRESSED:
        raise CodeObjectError(f"{name}: the compressed bundle claims {size} bytes of content: it is damaged.")
    stream = data[header : total or len(data)]
    content, used = _inflate(stream, method, size, name)
    if len(content) != size:
        raise CodeObjectError(
            f"{name}: the bundle has {len(content)} bytes after decompression, its header says {size}."
        )
    sums = hashlib.md5(content, usedforsecurity=False).digest()
    if digest not in (int.from_bytes(sums[:8], "little"), int.from_bytes(sums[8:], "little")):
        raise CodeObjectError(
            f"{name}: the hash of the decompressed bundle does not agree with its header: it is damaged."
        )
    return content, total or header + used


def _inflate(stream: memoryview, method: int, size: int, name: str) -> tuple[bytes, int]:
    """The content of one zlib or zstd stream, and the bytes of the stream that it took."""
    try:
        if method == _METHOD_ZLIB:
            inflater = zlib.decompressobj()
            content = inflater.decompress(stream, size + 1)
            # A stream that is exactly `size` long may still hold its end marker and checksum back.
            content += inflater.decompress(inflater.unconsumed_tail, 1)
            finished, unused = inflater.eof, len(inflater.unused_data)
        elif method == _METHOD_ZSTD:
            if zstandard.frame_content_size(stream[:32]) not in (-1, size):
                raise CodeObjectError(
                    f"{name}: the zstd stream and the header disagree about the size ({size}): it is damaged."
                )
            decoder = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            content = decoder.decompress(stream)
            finished, unused = decoder.eof, len(decoder.unused_data)
        else:
            raise CodeObjectError(f"{name}: compression method {method}; 0 (zlib) and 1 (zstd) are read.")
    except (zlib.error, zstandard.ZstdError) as error:
        raise CodeObjectError(f"{name}: the compressed bundle is damaged: {error}.") from error
    if not finished:
        raise CodeObjectError(f"{name}: the compressed bundle is cut short, or longer than its header says.")
    return content, len(stream) - unused
