"""AMDGPU code objects: kernels, their arguments and registers, variables, as the compiler wrote them down.

Facts are from LLVM's AMDGPUUsage: "Code Object Metadata" (the msgpack note of type 32), "Kernel Descriptor"
and "ELF Code Object". `read_file` opens a .hsaco, an offload bundle (compressed or not), or a program or
library with fat binaries, and hands back its code objects; a code object parses its metadata when it is first
asked, and builds a `Kernel` only for the kernel that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgpack

from kerncap.core.code.bundle import is_amdgpu
from kerncap.core.code.elf import STB_LOCAL, STT_OBJECT, CodeObjectError, Elf

__all__ = [
    "Argument",
    "CodeObject",
    "CodeObjectError",
    "Descriptor",
    "Kernel",
    "Target",
    "Variable",
    "is_declared",
]  # fmt: skip

_METADATA_NOTE = 32
_MOST_ARGUMENTS = 1 << 24  # bytes: a kernel of more cannot be launched
_POINTER_KINDS = frozenset({"global_buffer", "dynamic_shared_pointer"})
# Symbols that the toolchain adds and no program declares.
_NOT_VARIABLES = re.compile(r"__hip_cuid_|__hip_gpubin_|__oclc_|__AMDGCN|llvm\.|\.L")


def is_declared(name: str) -> bool:
    """Whether a variable of that name is the program's own, and none that the toolchain adds."""
    return _NOT_VARIABLES.match(name) is None


def sm_runs_on(code: str, device: str) -> bool:
    """Whether a cubin for `code` ("sm_90a") may run on a GPU of arch `device` ("sm_90").

    CUDA C++ Programming Guide, "Binary Compatibility" and "Feature Set Compiler Targets": the same major
    version and no greater minor one; with the suffix a, that version alone.
    """
    mine = re.fullmatch(r"sm_(\d+)(\d)([af]?)", code)
    theirs = re.fullmatch(r"sm_(\d+)(\d)[af]?", device)
    if mine is None or theirs is None or mine[1] != theirs[1]:
        return False
    return mine[2] == theirs[2] if mine[3] == "a" else int(mine[2]) <= int(theirs[2])


@dataclass(frozen=True)
class Target:
    """A target id: "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-" is arch gfx942 with two features fixed.

    A feature that is not named runs in either mode.
    """

    triple: str
    arch: str
    features: Mapping[str, bool]

    @classmethod
    def parse(cls, text: str) -> Target:
        """From a full target id, or from what `--offload-arch` takes ("gfx942:xnack-")."""
        head, *features = text.split(":")
        # ARCH-VENDOR-OS-ENVIRONMENT-PROCESSOR; LLVM 23 writes "amdgpu9.42-amd-amdhsa-unknown-gfx942".
        parts = head.split("-", 4)
        triple, arch = ("-".join(parts[:3]), parts[4]) if len(parts) == 5 else ("amdgcn-amd-amdhsa", head)
        if triple.startswith("amdgpu"):
            triple = triple.replace(triple.partition("-")[0], "amdgcn", 1)
        return cls(triple, arch, {f[:-1]: f[-1] == "+" for f in features if f[-1:] in ("+", "-")})

    @property
    def offload_arch(self) -> str:
        """What `--offload-arch` takes."""
        return ":".join([self.arch, *(f"{n}{'+' if on else '-'}" for n, on in sorted(self.features.items()))])

    def __str__(self) -> str:
        return f"{self.triple}--{self.offload_arch}"

    def runs_on(self, device: Target) -> bool:
        """Whether code for this target may run on a device: same arch, and no feature fixed the other way."""
        if self.triple.startswith("nvptx"):
            return sm_runs_on(self.arch, device.arch)
        return self.arch == device.arch and all(
            device.features.get(n, on) == on for n, on in self.features.items()
        )


@dataclass(frozen=True)
class Argument:
    """One kernel argument. `offset` and `size` are bytes in the kernarg segment.

    `value_kind` is the metadata's word: by_value, global_buffer, hidden_block_count_x ... A pointer may hide
    in a by_value argument (structs; everything in Tensile's objects): `is_pointer` is only what is declared.
    """

    offset: int
    size: int
    value_kind: str
    name: str = ""
    type_name: str = ""
    address_space: str = ""
    is_const: bool = False

    @property
    def is_pointer(self) -> bool:
        """Declared as a pointer to memory."""
        return self.value_kind in _POINTER_KINDS

    @property
    def is_hidden(self) -> bool:
        """Filled in by the runtime, not by the program."""
        return self.value_kind.startswith("hidden_")


@dataclass(frozen=True)
class Descriptor:
    """The 64-byte kernel descriptor, as far as it says what the metadata does not."""

    address: int
    entry_offset: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int
    preload_length: int
    preload_offset: int

    @property
    def wave32(self) -> bool:
        """Property bit 10."""
        return bool(self.properties >> 10 & 1)

    @property
    def accum_offset(self) -> int:
        """gfx90a and gfx94x: the first VGPR that is an accumulation register (AGPR)."""
        return ((self.rsrc3 & 0x3F) + 1) * 4


@dataclass(frozen=True)
class Kernel:
    """A kernel in a code object. Sizes are bytes; `lds_bytes` and `scratch_bytes` are the fixed parts (a
    workgroup, a lane).
    """

    name: str
    symbol: str
    arguments: tuple[Argument, ...]
    kernarg_bytes: int
    kernarg_align: int
    lds_bytes: int
    scratch_bytes: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    wavefront: int
    max_workgroup: int
    required_workgroup: tuple[int, int, int] | None
    dynamic_stack: bool
    kind: str = "normal"

    @property
    def explicit_arguments(self) -> tuple[Argument, ...]:
        """The arguments that the program passes."""
        return tuple(a for a in self.arguments if not a.is_hidden)

    @property
    def hidden(self) -> frozenset[str]:
        """Hidden arguments by kind, such as hidden_hostcall_buffer: what the runtime must provide."""
        return frozenset(a.value_kind for a in self.arguments if a.is_hidden)


@dataclass(frozen=True)
class Variable:
    """A __device__ or __constant__ variable. `address` is its ELF virtual address; it moves with the load
    base. A `local` one is static: the loader does not know its name.
    """

    name: str
    address: int
    size: int
    writable: bool
    local: bool = False


@dataclass
class CodeObject:
    """One AMDGPU ELF file. `target` is what it was compiled for; `offset` where it is in its container."""

    data: memoryview
    source: str
    entry_target: str = ""
    offset: int = 0
    compressed: bool = False
    elf: Elf = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not is_amdgpu(self.data):
            raise CodeObjectError(f"{self.source} is no AMDGPU code object.")
        self.elf = Elf(self.data, self.source)

    @property
    def version(self) -> int:
        """The code object version: 4, 5 or 6 (the ELF ABI version plus two)."""
        return self.elf.abi_version + 2

    @property
    def relocatable(self) -> bool:
        """An object file that is not linked yet, and cannot be loaded."""
        return int(self.elf.type) == 1

    @cached_property
    def target(self) -> Target:
        """From the metadata, else from the bundle entry that held the object."""
        text: Any = self.metadata.get("amdhsa.target") or self.entry_target
        if not text:
            raise CodeObjectError(
                f"{self.source} (code object v{self.version}) does not say which target it is for."
            )
        return Target.parse(str(text))

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The unpacked metadata. Raises CodeObjectError where there is none, or it cannot be read.

        What is linked of many objects, as Tensile's libraries are, has a note of each: their kernels are put
        into one list.
        """
        found: dict[str, Any] = {}
        for owner, kind, content in self.elf.notes():
            if owner == "AMDGPU" and kind == _METADATA_NOTE:
                value = self._unpacked(content)
                kernels = value.get("amdhsa.kernels")
                if found and isinstance(kernels, list) and isinstance(found.get("amdhsa.kernels"), list):
                    found["amdhsa.kernels"] += kernels
                found = found or value
        if found:
            return found
        raise CodeObjectError(
            f"{self.source} has no AMDGPU metadata note: its kernels' arguments are not known "
            f"(code object v{self.version}; v3 and later have one unless it was stripped)."
        )

    def _unpacked(self, note: memoryview) -> dict[str, Any]:
        try:
            value: Any = msgpack.unpackb(note, strict_map_key=False)
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise CodeObjectError(f"{self.source}: the metadata note is damaged: {error}.") from error
        if isinstance(value, dict):
            return value
        raise CodeObjectError(f"{self.source}: the metadata note is damaged: it holds no map.")

    @cached_property
    def _raw(self) -> dict[str, dict[str, Any]]:
        rows = self.metadata.get("amdhsa.kernels", [])
        if not isinstance(rows, list) or not all(isinstance(k, dict) for k in rows):
            raise CodeObjectError(f"{self.source}: the metadata note is damaged: it has no list of kernels.")
        return {str(k.get(".name", "")): k for k in rows}

    @property
    def kernel_names(self) -> list[str]:
        """Mangled names, in the object's order."""
        return list(self._raw)

    def has_kernel(self, name: str) -> bool:
        """Whether a kernel of that mangled name is here; looks only at the string table."""
        wanted = b"\0" + name.removesuffix(".kd").encode() + b".kd\0"
        tables = [s for s in self.elf.sections if s.name in (".strtab", ".dynstr")]
        return any(wanted in bytes(self.elf.content(s)) for s in tables)

    def describes(self, name: str) -> bool:
        """Whether the metadata is readable and has that kernel: its arguments are known."""
        try:
            known: bool = name.removesuffix(".kd") in self._raw
            return known
        except CodeObjectError:
            return False

    def kernel(self, name: str) -> Kernel:
        """The kernel of that exact mangled name (".kd" may follow). Raises CodeObjectError naming those that
        are here.
        """
        raw = self._raw.get(name.removesuffix(".kd"))
        if raw is None:
            here = self.kernel_names
            some = ", ".join(here[:8]) + (f" and {len(here) - 8} more" if len(here) > 8 else "")
            raise CodeObjectError(
                f"{self.source} has no kernel {name}; it has {some or 'none'}.", candidates=here[:50]
            )
        return _kernel(raw, self.source)

    def kernels(self) -> Iterator[Kernel]:
        """Every kernel, one at a time."""
        return (_kernel(raw, self.source) for raw in self._raw.values())

    def descriptor(self, name: str) -> Descriptor:
        """The kernel descriptor behind `name`.kd. Raises CodeObjectError where it is not there."""
        symbol = next((s for s in self.elf.symbols if s.name == f"{name}.kd"), None)
        data = self.elf.at_address(symbol.value, 64) if symbol and symbol.section else None
        if symbol is None or data is None:
            raise CodeObjectError(f"{self.source} has no kernel descriptor {name}.kd: it cannot be launched.")
        word = [int.from_bytes(data[i : i + 4], "little") for i in range(0, 64, 4)]
        preload = word[14] >> 16
        entry = int.from_bytes(data[16:24], "little", signed=True)
        return Descriptor(
            symbol.value, entry, word[12], word[13], word[11], word[14] & 0xFFFF, preload & 0x7F, preload >> 7
        )

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Module variables that have a symbol."""
        sections, found = self.elf.sections, {}
        for s in self.elf.symbols:
            if s.kind != STT_OBJECT or not s.size or not 0 < s.section < len(sections):
                continue
            if s.name.endswith(".kd") or not is_declared(s.name):
                continue
            writable = bool(sections[s.section].flags & 1)
            found[s.name] = Variable(s.name, s.value, s.size, writable, s.binding == STB_LOCAL)
        return tuple(found.values())

    @property
    def has_debug_info(self) -> bool:
        """Compiled with -g: kerncap.core.code.dwarf can say where a kernel is defined and what its pointers
        point to.
        """
        return self.elf.section(".debug_info") is not None


def _kernel(raw: Mapping[str, Any], source: str) -> Kernel:
    try:
        required = raw.get(".reqd_workgroup_size")
        kernel = Kernel(
            name=str(raw[".name"]),
            symbol=str(raw[".symbol"]),
            arguments=tuple(
                Argument(
                    offset=int(a[".offset"]),
                    size=int(a[".size"]),
                    value_kind=str(a[".value_kind"]),
                    name=str(a.get(".name", "")),
                    type_name=str(a.get(".type_name", "")),
                    address_space=str(a.get(".address_space", "")),
                    is_const=bool(a.get(".is_const", False)),
                )
                for a in raw.get(".args", ())
            ),
            kernarg_bytes=int(raw[".kernarg_segment_size"]),
            kernarg_align=int(raw.get(".kernarg_segment_align", 8)),
            lds_bytes=int(raw[".group_segment_fixed_size"]),
            scratch_bytes=int(raw[".private_segment_fixed_size"]),
            vgprs=int(raw.get(".vgpr_count", 0)),
            agprs=int(raw.get(".agpr_count", 0)),
            sgprs=int(raw.get(".sgpr_count", 0)),
            vgpr_spills=int(raw.get(".vgpr_spill_count", 0)),
            sgpr_spills=int(raw.get(".sgpr_spill_count", 0)),
            wavefront=int(raw[".wavefront_size"]),
            max_workgroup=int(raw.get(".max_flat_workgroup_size", 0)),
            required_workgroup=(int(required[0]), int(required[1]), int(required[2])) if required else None,
            dynamic_stack=bool(raw.get(".uses_dynamic_stack", False)),
            kind=str(raw.get(".kind", "normal")),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CodeObjectError(
            f"{source}: the metadata of kernel {raw.get('.name')!r} is damaged or incomplete ({error!r})."
        ) from error
    _check_places(kernel, source)
    return kernel


def _check_places(kernel: Kernel, source: str) -> None:
    """What is laid out by these numbers needs them to be offsets and sizes."""
    sizes = {
        "kernarg_segment_size": kernel.kernarg_bytes,
        "group_segment_fixed_size": kernel.lds_bytes,
        "private_segment_fixed_size": kernel.scratch_bytes,
    }
    for name, size in sizes.items():
        if not 0 <= size < 1 << 32:  # 32 bits in the kernel descriptor
            raise CodeObjectError(
                f"{source}: the metadata of kernel {kernel.name!r} is damaged: its {name} is {size}."
            )
    for number, argument in enumerate(kernel.arguments, 1):
        if argument.offset < 0 or argument.size < 0 or argument.offset + argument.size > _MOST_ARGUMENTS:
            raise CodeObjectError(
                f"{source}: the metadata of kernel {kernel.name!r} is damaged: argument {number} "
                f"({argument.value_kind}) has {argument.size} bytes at offset {argument.offset}."
            )
