"""NVIDIA's cubins: kernels, their parameters and registers, variables, as ptxas wrote them down.

A cubin is an ELF file of machine EM_CUDA. What it says of kernels is in `.nv.info` (of the file) and
`.nv.info.KERNEL`: entries of a format, an attribute and a value (EIATTR_* in `cuobjdump -elf`). A `Cubin`
answers what a `CodeObject` does; its `Kernel` has registers a thread in `vgprs`, static shared memory in
`lds_bytes`, the stack of a thread in `scratch_bytes`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kerncap.core.code.codeobject import Argument, CodeObject, Descriptor, Kernel, Target, Variable
from kerncap.core.code.elf import ELF_MAGIC, SHT_NOBITS, STT_FUNC, STT_OBJECT, CodeObjectError, Elf, Section

EM_CUDA = 190
TRIPLE = "nvptx64-nvidia-cuda"
_ABI_2 = 8  # e_ident's ABI version, from CUDA 13 on (LLVM's ELF.h: ELFABIVERSION_CUDA_V2)
_ACCELERATORS_1 = 0x800  # e_flags before that: code for sm_90a
_ARCH_OPTION = re.compile(rb"-arch[= ]+(sm_\d+[af]?)")
# A thread block of sm_90 and later has 1 KiB of shared memory that the system takes; the section counts it.
_RESERVED_FROM, _RESERVED = 90, 1024
_NO_VALUE, _BYTE, _HALF, _SIZED = 1, 2, 3, 4
_MAX_THREADS, _REQUIRED, _STACK, _PARAMETER, _PARAMETER_2 = 0x05, 0x10, 0x12, 0x17, 0x45
_PARAMETER_BYTES, _REGISTERS, _CLUSTER = 0x19, 0x2F, 0x3D
# Symbols of data that the toolchain adds and no program declares.
_NOT_VARIABLES = re.compile(r"\$|\.|__nv_|vprintf|__cuda")


def is_cubin(data: memoryview) -> bool:
    """Whether these bytes begin a cubin."""
    return (
        len(data) >= 64 and bytes(data[:4]) == ELF_MAGIC and int.from_bytes(data[18:20], "little") == EM_CUDA
    )


def attributes(content: memoryview) -> Iterator[tuple[int, bytes]]:
    """(attribute, value) of the entries of an .nv.info section."""
    at = 0
    while at + 4 <= len(content):
        form, attribute = content[at], content[at + 1]
        value = bytes(content[at + 2 : at + 4])
        at += 4
        if form == _SIZED:
            size = int.from_bytes(value, "little")
            value = bytes(content[at : at + size])
            at += size
        elif form not in (_NO_VALUE, _BYTE, _HALF):
            return  # a format of a later version: where the next entry begins is not known
        yield attribute, value


@dataclass
class Cubin(CodeObject):
    """One cubin. `target` is what ptxas compiled for, such as nvptx64-nvidia-cuda--sm_90a."""

    def __post_init__(self) -> None:
        if not is_cubin(self.data):
            raise CodeObjectError(f"{self.source} is no cubin.")
        self.elf = Elf(self.data, self.source)

    @property
    def version(self) -> int:
        """The ELF ABI version: 7, or 8 from CUDA 13 on."""
        return self.elf.abi_version

    @cached_property
    def target(self) -> Target:
        """From the flags of the file, with the suffix that the note of ptxas's command line adds."""
        flags = self.elf.flags
        if self.elf.abi_version >= _ABI_2:
            name = f"sm_{flags >> 8 & 0xFF}"
        else:
            name = f"sm_{flags & 0xFF}" + ("a" if flags & _ACCELERATORS_1 else "")
        note = self.elf.section(".note.nv.tkinfo")
        told = _ARCH_OPTION.search(bytes(self.elf.content(note))) if note else None
        if told and told[1].decode().rstrip("af") == name.rstrip("a"):
            name = told[1].decode()
        return Target(TRIPLE, name, {})

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """A cubin has none of AMD's."""
        return {}

    @cached_property
    def _entries(self) -> dict[str, int]:
        """Kernel names and the index of their symbol: functions with STO_CUDA_ENTRY in st_other."""
        table = next((s for s in self.elf.sections if s.kind == 2), None)
        if table is None:
            return {}
        raw = self.elf.content(table)
        return {
            symbol.name: index
            for index, symbol in enumerate(self.elf.symbols)
            if symbol.kind == STT_FUNC and symbol.section and raw[24 * index + 5] & 0x10
        }

    @property
    def kernel_names(self) -> list[str]:
        """Mangled names, in the file's order."""
        return list(self._entries)

    def has_kernel(self, name: str) -> bool:
        """Whether a kernel of that mangled name is here."""
        return name in self._entries

    def describes(self, name: str) -> bool:
        """Whether the kernel is here and its parameters are known."""
        return name in self._entries and self.elf.section(f".nv.info.{name}") is not None

    def descriptor(self, name: str) -> Descriptor:
        """Raises CodeObjectError: a cubin has no descriptors."""
        raise CodeObjectError(f"{self.source} is a cubin: it has no kernel descriptors.")

    def kernel(self, name: str) -> Kernel:
        """The kernel of that exact mangled name. Raises CodeObjectError naming those that are here."""
        if name not in self._entries:
            here = self.kernel_names
            some = ", ".join(here[:8]) + (f" and {len(here) - 8} more" if len(here) > 8 else "")
            raise CodeObjectError(
                f"{self.source} has no kernel {name}; it has {some or 'none'}.", candidates=here[:50]
            )
        own = self.elf.section(f".nv.info.{name}")
        try:
            return self._kernel(name, list(attributes(self.elf.content(own))) if own else [])
        except (struct.error, IndexError) as error:
            raise CodeObjectError(
                f"{self.source}: the attributes of kernel {name!r} are damaged ({error})."
            ) from error

    def kernels(self) -> Iterator[Kernel]:
        """Every kernel, one at a time."""
        return (self.kernel(name) for name in self._entries)

    @cached_property
    def _of_file(self) -> dict[tuple[int, int], int]:
        """(attribute, symbol) to the number that the file's own .nv.info gives it."""
        section = self.elf.section(".nv.info")
        pairs = attributes(self.elf.content(section)) if section else ()
        return {
            (attribute, struct.unpack_from("<I", value)[0]): struct.unpack_from("<I", value, 4)[0]
            for attribute, value in pairs
            if len(value) == 8
        }

    def _kernel(self, name: str, entries: list[tuple[int, bytes]]) -> Kernel:
        index = self._entries[name]
        arguments: dict[int, Argument] = {}
        most, required, size = 0, None, 0
        for attribute, value in entries:
            if attribute in (_PARAMETER, _PARAMETER_2):
                _, ordinal, offset, packed = struct.unpack_from("<IHHI", value)
                length = packed >> 18 if attribute == _PARAMETER else packed & 0xFFFF
                arguments[ordinal] = Argument(offset, length, "by_value")
            elif attribute == _MAX_THREADS:
                x, y, z = struct.unpack_from("<3I", value)
                most = x * max(y, 1) * max(z, 1)
            elif attribute == _REQUIRED:
                x, y, z = struct.unpack_from("<3I", value)
                required = (x, y, z)
            elif attribute == _PARAMETER_BYTES:
                size = int.from_bytes(value[:2], "little")
        shared = self.elf.section(f".nv.shared.{name}")
        static = shared.size if shared else 0
        if int(re.sub(r"\D", "", self.target.arch) or 0) >= _RESERVED_FROM:
            static = max(static - _RESERVED, 0)
        code = self.elf.section(f".text.{name}")
        registers = self._of_file.get((_REGISTERS, index), 0)
        return Kernel(
            name=name,
            symbol=name,
            arguments=tuple(arguments[ordinal] for ordinal in sorted(arguments)),
            kernarg_bytes=size,
            kernarg_align=16,
            lds_bytes=static,
            scratch_bytes=self._of_file.get((_STACK, index), 0) if code else 0,
            vgprs=registers,
            agprs=0,
            sgprs=0,
            vgpr_spills=0,
            sgpr_spills=0,
            wavefront=32,
            max_workgroup=most,
            required_workgroup=required,
            dynamic_stack=False,
        )

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """__device__ and __constant__ variables. Their addresses are offsets in their section."""
        found = {}
        for s in self.elf.symbols:
            section = self._data_section(s.section)
            if s.kind != STT_OBJECT or not s.size or section is None or _NOT_VARIABLES.match(s.name):
                continue
            found[s.name] = Variable(s.name, s.value, s.size, section.name.startswith(".nv.global"))
        return tuple(found.values())

    def initial(self, name: str) -> bytes | None:
        """What a variable holds as the file gives it; None where there is none of that name."""
        for s in self.elf.symbols:
            section = self._data_section(s.section)
            if s.name != name or s.kind != STT_OBJECT or section is None:
                continue
            if section.kind == SHT_NOBITS:
                return bytes(s.size)
            return bytes(self.elf.content(section)[s.value : s.value + s.size])
        return None

    def _data_section(self, index: int) -> Section | None:
        sections = self.elf.sections
        if not 0 < index < len(sections):
            return None
        name = sections[index].name
        # Bank 0 holds parameters, bank 3 the program's constants; others are the compiler's.
        return sections[index] if name.startswith((".nv.global", ".nv.constant3")) else None

    @property
    def has_debug_info(self) -> bool:
        """False: what nvcc -G writes is not read."""
        return False
