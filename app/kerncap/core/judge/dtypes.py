"""What the bytes of captured memory are: numbers of which type, from where on.

What is declared counts: DWARF, the mangled name's parameter types, or what the caller says. Memory that
nothing is declared for is numbers as wide as the kernel's stores (core/judge/store_width.py), else bytes; a
type is never chosen because the numbers would then agree.
"""

from __future__ import annotations

import itertools
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kerncap.core.capture.captured_code import captured_code
from kerncap.core.capture.records import Capture
from kerncap.core.code.codeobject import CodeObject, CodeObjectError, Kernel
from kerncap.core.errors import DamagedCaptureError, UsageError
from kerncap.core.judge.pointees import Pointed, follow
from kerncap.core.judge.store_width import stored_type
from kerncap.core.triton import triton_descriptors, triton_record

if TYPE_CHECKING:
    from kerncap.core.code.dwarf import ElementType, KernelDebug, Scalar

# Names that a user, a signature or Triton may use. core/judge/floats.py decodes bf16 and the 8-bit floats.
NAMES: dict[str, str] = {
    **{name: "f64" for name in ("f64", "fp64", "float64", "double")},
    **{name: "f32" for name in ("f32", "fp32", "float32", "float")},
    **{name: "f16" for name in ("f16", "fp16", "float16", "half", "_Float16", "__half", "__fp16")},
    **{
        name: "bf16"
        for name in ("bf16", "bfloat16", "__bf16", "hip_bfloat16", "__hip_bfloat16", "__nv_bfloat16")
    },
    **{name: "i64" for name in ("i64", "int64", "int64_t", "long", "long long")},
    **{
        name: "u64" for name in ("u64", "uint64", "uint64_t", "unsigned long", "unsigned long long", "size_t")
    },
    **{name: "i32" for name in ("i32", "int32", "int32_t", "int")},
    **{name: "u32" for name in ("u32", "uint32", "uint32_t", "unsigned int", "unsigned")},
    **{name: "i16" for name in ("i16", "int16", "int16_t", "short")},
    **{name: "u16" for name in ("u16", "uint16", "uint16_t", "unsigned short")},
    **{name: "i8" for name in ("i8", "int8", "int8_t", "char", "signed char")},
    **{name: "u8" for name in ("u8", "uint8", "uint8_t", "unsigned char", "bytes", "std::byte")},
    **{name: "bool" for name in ("bool", "i1")},
    **{name: "e4m3" for name in ("e4m3", "fp8e4nv", "float8_e4m3fn")},
    **{name: "e5m2" for name in ("e5m2", "fp8e5", "float8_e5m2")},
    **{name: "e4m3fnuz" for name in ("e4m3fnuz", "fp8e4b8", "float8_e4m3fnuz")},
    **{name: "e5m2fnuz" for name in ("e5m2fnuz", "fp8e5b16", "float8_e5m2fnuz")},
}
SIZES = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "u64": 8, "i32": 4, "u32": 4, "i16": 2, "u16": 2,
    "i8": 1, "u8": 1, "bool": 1, "pointer": 8, "bytes": 1, "e4m3": 1, "e5m2": 1, "e4m3fnuz": 1, "e5m2fnuz": 1,
}  # fmt: skip
FLOATS = frozenset({"f64", "f32", "f16", "bf16", "e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz"})
_VECTOR = re.compile(r"(float|double|int|uint|char|uchar|short|ushort|long|ulong|half)([234])\Z")
_LLVM_VECTOR = re.compile(r"(.+?) __(?:vector\((\d+)\)|attribute__\(\(.*vector_size\((\d+).*)\Z")


@dataclass(frozen=True)
class Field:
    """`count` numbers of `dtype`, `offset` bytes into the element."""

    offset: int
    dtype: str
    count: int = 1

    @property
    def size(self) -> int:
        return SIZES[self.dtype]


@dataclass(frozen=True)
class Layout:
    """An element of `stride` bytes and its numbers. Bytes that no field covers are compared as bytes."""

    name: str
    stride: int
    fields: tuple[Field, ...]

    @property
    def is_float(self) -> bool:
        return any(field.dtype in FLOATS for field in self.fields)


BYTES = Layout("bytes", 1, (Field(0, "bytes"),))


def scalar(name: str) -> Layout:
    """The layout of a number, by any of its usual names. Raises UsageError for a name that is none."""
    dtype = NAMES.get(name.removeprefix("*").strip())
    if dtype is None:
        raise UsageError(f"dtype {name!r} is not known; known: {', '.join(sorted(set(NAMES.values())))}")
    return Layout(dtype, SIZES[dtype], (Field(0, dtype),))


@dataclass(frozen=True)
class Typed:
    """From `address` on, up to the next one or the region's end, memory is of `layout`."""

    address: int
    layout: Layout
    source: str  # "debug information", "mangled name", "source", "user"


USER = "user"
STORES = "width of the kernel's stores"
NOT_KNOWN = "not known"


class TypeMap:
    """What is known of a capture's memory. `fallback` names the dtype of memory that is not in `typed`, when
    it is first asked for; `arguments` are the names of pointer arguments by what they point to. `overruled`:
    (what the caller says, the other type that something else says of the same memory).
    """

    def __init__(
        self,
        capture: Capture,
        typed: list[Typed],
        fallback: Callable[[], str | None] | None = None,
        arguments: Mapping[int, str] | None = None,
    ) -> None:
        self._capture = capture
        self._fallback = fallback
        self.arguments = arguments or {}
        # The first declaration of an address wins: callers put the better sources first.
        best: dict[int, Typed] = {}
        for item in typed:
            best.setdefault(item.address, item)
        self.overruled = self._overruled(typed)
        self._typed = [best[address] for address in sorted(best)]
        self._starts = [item.address for item in self._typed]

    def _overruled(self, typed: list[Typed]) -> list[tuple[Typed, Typed]]:
        found = []
        for user in (item for item in typed if item.source == USER):
            region = self._capture.region_at(user.address)
            start = user.address if region is None else region.address
            before = [item for item in typed if item.source != USER and start <= item.address <= user.address]
            known = max(before, key=lambda item: item.address, default=None)
            # A pointer to single bytes is what raw memory is handed over as.
            raw = known is None or (known.layout.stride == 1 and not known.layout.is_float)
            if known is not None and not raw and known.layout.name != user.layout.name:
                found.append((user, known))
        return found

    @cached_property
    def _undeclared(self) -> Layout:
        name = self._fallback() if self._fallback is not None else None
        return BYTES if name in (None, "u8") else scalar(str(name))

    def declared(self, address: int) -> Typed | None:
        """What says what is at `address`; None where nothing does."""
        region = self._capture.region_at(address)
        i = bisect_right(self._starts, address) - 1
        if region is not None and i >= 0 and self._starts[i] >= region.address:
            return self._typed[i]
        return None

    def at(self, address: int) -> tuple[Layout, int]:
        """The layout at `address` and where its elements begin to count."""
        declared = self.declared(address)
        if declared is not None:
            return declared.layout, declared.address
        region = self._capture.region_at(address)
        if region is None:
            return BYTES, address
        layout = self._undeclared
        return layout, region.address - region.address % layout.stride

    def source(self, address: int) -> str:
        """What the layout at `address` rests on."""
        declared = self.declared(address)
        if declared is not None:
            return declared.source
        known = self._capture.region_at(address) is not None and self._undeclared is not BYTES
        return STORES if known else NOT_KNOWN

    def split(self, begin: int, end: int) -> list[tuple[int, int, Layout, int]]:
        """(begin, end, layout, anchor) of the parts of a range of one region."""
        cuts = [begin, *(s for s in self._starts if begin < s < end), end]
        return [(a, b, *self.at(a)) for a, b in itertools.pairwise(cuts) if a < b]


def type_map(capture: Capture, declared: Mapping[int | str, str] | None = None) -> TypeMap:
    """The types of a capture's memory. `declared`: a region id, or an address "0x7f...", to a dtype.

    Raises DamagedCaptureError where the captured code object is not what it was.
    """
    typed: list[Typed] = []
    for key, name in (declared or {}).items():
        typed.append(Typed(_declared_address(capture, key), scalar(name), USER))

    def fallback() -> str | None:
        return stored_type(capture.code_path(), capture.device.name, capture.dispatch.symbol)

    try:
        code = captured_code(capture)
        kernel = code.kernel(capture.dispatch.symbol)
        debug = _debug(code, capture.dispatch.symbol)
    except CodeObjectError:
        return TypeMap(capture, typed, fallback)
    pointers = argument_pointers(capture, kernel)
    called = _argument_names(kernel, debug)
    named = {address: called[i] for i, address in reversed(pointers) if called[i]}  # the first one counts
    roots: list[tuple[str, int, Pointed[Layout]]] = []
    if debug is not None and len(debug.parameters) == len(kernel.explicit_arguments):
        roots += [("debug information", *root) for root in _from_debug(capture, kernel, debug)]
    for names, source in (
        (parameter_types(capture.dispatch.demangled), "mangled name"),
        (reproducer_types(capture, kernel.name), "source"),
        (_triton_types(capture, len(kernel.explicit_arguments)), "Triton's signature"),
    ):
        if names is None or len(names) != len(kernel.explicit_arguments):
            continue
        roots += [(source, address, _named(names[i])) for i, address in pointers]
    # What an argument points to goes before what a word in memory points to, and both after the user.
    arguments = [
        Typed(at, pointed.what, source)
        for source, at, pointed in roots
        if pointed.what is not None and capture.region_at(at) is not None
    ]
    typed += _variables(capture, code)
    told = TypeMap(capture, typed)
    followed = [
        Typed(address, layout, source)
        for source in dict.fromkeys(source for source, _, _ in roots)
        for address, layout in follow(capture, [(at, p) for name, at, p in roots if name == source])
        if told.declared(address) is None
    ]
    return TypeMap(capture, [*typed, *arguments, *followed], fallback, named)


def _argument_names(kernel: Kernel, debug: KernelDebug | None) -> list[str]:
    """Of each explicit argument, from the metadata or debug information; empty where neither has one."""
    names = [a.name.removesuffix(".coerce") for a in kernel.explicit_arguments]
    if debug is None or len(debug.parameters) != len(names):
        return names
    return [p.name or name for name, p in zip(names, debug.parameters, strict=True)]


def _variables(capture: Capture, code: CodeObject) -> list[Typed]:
    """The module variables, where debug information says what one of them is; the others then are bytes."""
    if not code.has_debug_info:
        return []
    from kerncap.core.code.dwarf import variable_types  # takes long to import

    try:
        known = variable_types(code, {v.name for v in code.variables})
    except CodeObjectError:
        return []
    delta = capture.code_object.load_delta
    typed = []
    for v in code.variables if known else ():
        layout = _from_dwarf(known[v.name]) if v.name in known else None
        if capture.region_at(delta + v.address) is not None:
            source = NOT_KNOWN if layout is None else "debug information"
            typed.append(Typed(delta + v.address, layout or BYTES, source))
    return typed


def _from_debug(
    capture: Capture, kernel: Kernel, debug: KernelDebug
) -> Iterator[tuple[int, Pointed[Layout]]]:
    """(address, what is there) of every pointer in the arguments, also of those in structs."""
    known: dict[int, Pointed[Layout]] = {}

    def pointed(key: int) -> Pointed[Layout]:
        if key not in known:
            element = debug.types.get(key)
            if element is None:
                return Pointed(None, 0)
            known[key] = Pointed(
                _from_dwarf(element), element.size, lambda: [*_pointers_in(element.scalars, pointed)]
            )
        return known[key]

    for argument, parameter in zip(kernel.explicit_arguments, debug.parameters, strict=True):
        for offset, target in _pointers_in(parameter.scalars, pointed):
            at = argument.offset + offset
            if offset + 8 <= argument.size:
                yield int.from_bytes(capture.kernarg.data[at : at + 8], "little"), target


def _pointers_in(
    scalars: Sequence[Scalar], pointed: Callable[[int], Pointed[Layout]]
) -> Iterator[tuple[int, Pointed[Layout]]]:
    for part in scalars:
        if part.encoding == "pointer" and part.target and part.size == 8:
            yield from ((part.offset + 8 * i, pointed(part.target)) for i in range(part.count))


def _named(text: str) -> Pointed[Layout]:
    """What a pointer type like "float**" points to: pointers to floats."""
    layout, target = _from_signature(text), _target(text)
    inner = [(0, _named(target))] if target is not None and target.endswith("*") else []
    return Pointed(layout, layout.stride if layout is not None else 0, lambda: inner)


def _debug(code: CodeObject, symbol: str) -> KernelDebug | None:
    if not code.has_debug_info:
        return None
    from kerncap.core.code.dwarf import kernel_debug  # takes long to import

    try:
        return kernel_debug(code, symbol)
    except CodeObjectError:
        return None  # the other sources of types remain


def _declared_address(capture: Capture, key: int | str) -> int:
    if isinstance(key, str) and key.lower().startswith("0x"):
        try:
            address = int(key, 16)
        except ValueError:
            raise UsageError(f"{key} is no address") from None
        if capture.region_at(address) is None:
            raise UsageError(f"{key} is in no captured region")
        return address
    for region in capture.regions:
        if region.id == int(key):
            return region.address
    there = ", ".join(str(region.id) for region in sorted(capture.regions, key=lambda r: r.id)[:20])
    more = f" and {len(capture.regions) - 20} more" if len(capture.regions) > 20 else ""
    raise UsageError(f"there is no region {key} in the capture; it has {there or 'none'}{more}")


def argument_pointers(capture: Capture, kernel: Kernel) -> list[tuple[int, int]]:
    """(index of the explicit argument, its value) of arguments that point into captured memory."""
    found = []
    for i, argument in enumerate(kernel.explicit_arguments):
        if argument.size != 8:
            continue
        value = int.from_bytes(capture.kernarg.data[argument.offset : argument.offset + 8], "little")
        if capture.region_at(value) is not None:
            found.append((i, value))
    return found


def _from_dwarf(element: ElementType) -> Layout | None:
    if not element.scalars or element.size <= 0:
        return None
    fields = []
    for part in element.scalars:
        prefix = {"float": "f", "signed": "i", "char": "i", "unsigned": "u"}.get(part.encoding)
        dtype = (
            f"{prefix}{part.size * 8}"
            if prefix
            else {"bool": "bool", "pointer": "pointer"}.get(part.encoding)
        )
        if part.encoding == "float" and part.size == 2 and ("bf" in part.name or "bf16" in element.name):
            dtype = "bf16"
        if dtype in SIZES and SIZES[dtype] == part.size:
            fields.append(Field(part.offset, dtype, part.count))
    if not fields:
        return None
    dtypes = {field.dtype for field in fields}
    name = dtypes.pop() if len(dtypes) == 1 else element.name
    if len(fields) == 1 and fields[0].offset == 0 and fields[0].count * fields[0].size == element.size:
        return Layout(name, fields[0].size, (Field(0, fields[0].dtype),))
    return Layout(name, element.size, tuple(fields))


def parameter_types(demangled: str) -> list[str] | None:
    """The parameter types of a demangled function name, top-level commas only; None where it shows none."""
    text = demangled.strip()
    if not text.endswith(")"):
        return None
    depth = 0
    start = None
    for i in range(len(text) - 1, -1, -1):
        depth += text[i] in ")>]"
        depth -= text[i] in "(<["
        if depth == 0:
            start = i
            break
    if start is None or text[start] != "(":
        return None
    inner = text[start + 1 : -1]
    parts, depth, current = [], 0, ""
    for char in inner:
        depth += char in "(<["
        depth -= char in ")>]"
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    if current.strip():
        parts.append(current.strip())
    return [] if parts in ([], ["void"]) else parts


def source_types(text: str, name: str) -> list[str] | None:
    """The parameter types of the kernel `name` as HIP source writes them; None where it is not in it."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    for match in re.finditer(rf"\b{re.escape(name)}\s*\(", text):
        before = re.split(r"[;{}]", text[: match.start()])[-1]
        depth, end = 1, match.end()
        while end < len(text) and depth:
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        if "__global__" not in before and "__attribute__((global))" not in before:
            continue
        types = parameter_types(f"{name}({text[match.end() : end - 1]})")
        return None if types is None else [_without_name(t) for t in types]
    return None


def _without_name(parameter: str) -> str:
    """ "const float* __restrict__ x = 0" is "const float*"."""
    parameter = parameter.split("=")[0]
    parameter = re.sub(r"\b(__restrict__|__restrict|restrict)\b", " ", parameter)
    parameter = " ".join(parameter.split())
    match = re.match(r"(.*[*&\s])\s*\w+(\[\d*\])?$", parameter)
    if match is None:
        return parameter
    return match[1].strip() + ("*" if match[2] else "")


def _triton_types(capture: Capture, count: int) -> list[str] | None:
    """The types of a Triton kernel's arguments; after those of its signature it takes pointers to scratch."""
    try:
        record = triton_record.read(capture.path)
    except DamagedCaptureError:
        return None
    pointers = triton_descriptors.pointers(record) if record is not None else []
    if not pointers or len(pointers) > count:
        return None
    return [*(f"{kind}*" if kind else "" for kind in pointers), *[""] * (count - len(pointers))]


def reproducer_types(capture: Capture, name: str) -> list[str] | None:
    """The parameter types in the source that lies beside the capture."""
    try:
        manifest = json.loads((capture.path / "manifest.json").read_bytes())
        variant = (manifest.get("source") or {}).get("variant")
        if not variant:
            return None
        text = (capture.path.parent / Path(str(variant)).name).read_text(errors="replace")
    except (OSError, ValueError, AttributeError):
        return None
    return source_types(text, name)


def _target(text: str) -> str | None:
    """ "float" of "float const*"; None of what is no pointer."""
    text = re.sub(r"\b(const|volatile|__restrict|restrict|__restrict__)\b", "", text)
    text = " ".join(text.split())
    return text[:-1].strip() if text.endswith(("*", "&")) else None


def _from_signature(text: str) -> Layout | None:
    """The layout that a pointer type like "float const*" points to; None for structs and for no pointer."""
    target = _target(text)
    if target is None:
        return None
    if target.endswith("*"):
        return Layout("pointer", 8, (Field(0, "pointer"),))
    if target in NAMES and NAMES[target] != "u8":
        return scalar(target)
    if target in ("unsigned char", "uint8_t"):
        return scalar("u8")
    for prefix in ("HIP_vector_type<",):
        if target.startswith(prefix):
            inner = target[len(prefix) :].split(",")[0].strip()
            return scalar(inner) if inner in NAMES else None
    match = _VECTOR.match(target)
    if match:
        names = {
            "uint": "unsigned int",
            "uchar": "unsigned char",
            "ushort": "unsigned short",
            "ulong": "unsigned long",
        }
        return scalar(names.get(match[1], match[1]))
    match = _LLVM_VECTOR.match(target)
    if match and match[1].strip() in NAMES:
        return scalar(match[1].strip())
    return None
