"""Code objects out of files of any kind: AMD's and NVIDIA's, alone or in bundles and executables.

Cubins are code objects to all that reads files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kerncap.core.code.bundle import entries, fatbin_sections, open_bytes
from kerncap.core.code.codeobject import CodeObject, CodeObjectError, Target
from kerncap.core.code.cubin import Cubin, is_cubin
from kerncap.core.code.fatbin import fat_entries, has_fatbin, is_fatbin
from kerncap.core.code.ptx import Ptx, is_ptx


def read_file(path: Path | str) -> Iterator[CodeObject]:
    """Every code object of a file, one at a time; see kerncap.core.code.bundle for the kinds of file.

    Raises CodeObjectError where the file cannot be read, or holds none.
    """
    path = Path(path)

    data = open_bytes(path)
    if is_cubin(data):
        yield Cubin(data, str(path))
        return
    if is_ptx(data):
        raise CodeObjectError(f"{path} is PTX, which has no code object before the driver compiles it.")
    if has_fatbin(data, str(path)) and not _of_hip(data, str(path)):
        yield from _cubins(path, data)
        return
    count = 0
    for entry in entries(data, str(path)):
        name = str(path) if entry.size == path.stat().st_size else f"{path} at offset {entry.offset}"
        count += 1
        yield CodeObject(entry.data, name, entry.target, entry.offset, entry.compressed)
    if not count:
        raise CodeObjectError(f"{path} has offload bundles, but none has code for an AMD GPU.")


def read_ptx(path: Path | str) -> Iterator[Ptx]:
    """The PTX that a file is, or that fat binaries of CUDA's have in it, one at a time."""
    data = open_bytes(Path(path))
    if is_ptx(data):
        yield Ptx(bytes(data))
    elif has_fatbin(data, str(path)):
        for entry in fat_entries(data, str(path), ptx=True):
            if entry.data is not None:
                yield Ptx(bytes(entry.data), entry.offset, entry.compressed)
            del entry


def _of_hip(data: memoryview, name: str) -> bool:
    return not is_fatbin(data) and bool(fatbin_sections(data, name))


def _cubins(path: Path, data: memoryview) -> Iterator[CodeObject]:
    """The cubins of CUDA's fat binaries in a file; one that only has PTX has none, and is right."""
    count = 0
    packed: list[str] = []
    later: list[str] = []
    for entry in fat_entries(data, str(path), ptx=False):
        if entry.ir:
            later.append(entry.arch)
            continue
        count += 1
        if not entry.readable:
            packed.append(f"{'PTX' if entry.ptx else 'a cubin'} for {entry.arch}")
        elif entry.data is not None:
            source = f"{path} at offset {entry.offset}"
            yield Cubin(entry.data, source, "", entry.offset, entry.compressed)
        del entry  # it can be large, and the next one is unpacked before it has its name
    if packed:
        raise CodeObjectError(
            f"{path} has {', '.join(packed)}, compressed in a way that is not read here: "
            f"`cuobjdump -xelf all {path}` writes the cubins as files, `-xptx all` the PTX."
        )
    if not count and later:
        raise CodeObjectError(
            f"{path} has no code yet for {', '.join(later)}: nvcc -dlto makes it when the program is linked. "
            "Name the program."
        )
    if not count:
        raise CodeObjectError(f"{path} has fat binaries of CUDA's with neither a cubin nor PTX in them.")


def read_code_object(path: Path | str) -> CodeObject:
    """The single code object of a .hsaco or .cubin file. Raises CodeObjectError where the file is of another
    kind.
    """

    data = open_bytes(Path(path))
    if is_fatbin(data):
        raise CodeObjectError(
            f"{path} is a fat binary of CUDA's: `cuobjdump -xelf all {path}` writes its cubins as files; "
            "name one of these."
        )
    return code_object_of(data, str(path))


def code_object_of(data: memoryview, source: str) -> CodeObject:
    """The single code object that these bytes are; `source` names them in errors. Raises CodeObjectError."""
    return Cubin(data, source) if is_cubin(data) else CodeObject(data, source)


def find_kernel(path: Path | str, name: str, device: Target | None = None) -> Iterator[CodeObject]:
    """The code objects of a file that define the kernel of that mangled name, for a device where one is
    given.
    """
    for code_object in read_file(path):
        if code_object.has_kernel(name) and (device is None or code_object.target.runs_on(device)):
            yield code_object


def select(path: Path | str, device: Target) -> CodeObject:
    """The code object of a file to run on a device: the one that fixes the most features among those that
    fit.

    Raises CodeObjectError naming the targets that are there.
    """
    found = list(read_file(path))
    fitting = [c for c in found if c.target.runs_on(device)]
    if not fitting:
        there = ", ".join(sorted({c.target.offload_arch for c in found}))
        raise CodeObjectError(f"{path} has no code for {device.offload_arch}; it has {there}.")
    return max(fitting, key=lambda c: len(c.target.features))


def machine_code(code_object: CodeObject, symbol: str) -> bytes | None:
    """The instructions of a kernel, or None where its symbol has no code."""
    if isinstance(code_object, Cubin):  # nothing has an address before it is loaded
        section = code_object.elf.section(f".text.{symbol}")
        return bytes(code_object.elf.content(section)) if section else None
    found = next((s for s in code_object.elf.symbols if s.name == symbol and s.section and s.size), None)
    data = code_object.elf.at_address(found.value, found.size) if found else None
    return bytes(data) if data is not None else None
