"""What a code object's DWARF says of a kernel: the file it is defined in, and what its pointers point to.

Only there where the program was compiled with -g. Locations are not read: the AMDGPU target's own DWARF
operations do not matter here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE

from kerncap.core.code.codeobject import CodeObject, Kernel
from kerncap.core.code.debug_sections import debug_units

# DWARF 5, section 7.8: DW_ATE_*
_ENCODINGS = {
    1: "address",
    2: "bool",
    4: "float",
    5: "signed",
    6: "signed",
    7: "unsigned",
    8: "unsigned",
    16: "char",
}
_TRANSPARENT = {
    "DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type",
    "DW_TAG_atomic_type",
}  # fmt: skip
_POINTERS = {"DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type"}
_RECORDS = {"DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type"}
_MAX_DEPTH = 16
_MAX_TYPES = 1000
_MOST_INFO_BYTES = 4_000_000


@dataclass(frozen=True)
class Scalar:
    """`count` numbers one after the other, at `offset` bytes from the start of the element.

    `encoding` is float, signed, unsigned, bool, char, pointer or unknown; `size` is the bytes of one.
    `target` is the key in KernelDebug.types of what a pointer points to; 0: not known.
    """

    offset: int
    encoding: str
    size: int
    count: int
    name: str = ""
    target: int = field(default=0, compare=False)


@dataclass(frozen=True)
class ElementType:
    """The type of a place in memory: its name, its size in bytes, and the numbers it is made of.

    Bytes that no scalar covers are padding. `scalars` is empty for void and for types that are only declared.
    """

    name: str
    size: int
    scalars: tuple[Scalar, ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter as written; `element` is None where it is not a pointer. `scalars` are the numbers and
    pointers that the parameter itself is made of: several for a struct that is passed by value.
    """

    name: str
    type_name: str
    element: ElementType | None
    scalars: tuple[Scalar, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class KernelDebug:
    """Where a kernel is defined, and its parameters. Paths are absolute where the compiler recorded its
    directory.

    `unit` is the translation unit that was compiled, `file` the file that holds the definition (a header,
    often). `types` are those that the parameters' pointers lead to, and pointers in those.
    """

    file: str
    line: int
    unit: str
    directory: str
    producer: str
    parameters: tuple[Parameter, ...]
    types: Mapping[int, ElementType] = field(default_factory=dict, compare=False)


def kernel_debug(code_object: CodeObject, name: str) -> KernelDebug | None:
    """The debug information of the kernel with that mangled name; None where there is none.

    Raises CodeObjectError where the debug sections are damaged.
    """
    if not code_object.has_debug_info:
        return None
    with debug_units(code_object) as units:
        for unit in units:
            die = definition_of(unit, name)
            if die is not None:
                return _describe(unit, die)
    return None


def parameters_by_kernel(code_object: CodeObject) -> dict[str, tuple[Parameter, ...]]:
    """The parameters of every kernel of a code object that debug information describes, by mangled name.

    Empty where there is none, and where reading it would take minutes. Raises CodeObjectError where the debug
    sections are damaged.
    """
    section = code_object.elf.section(".debug_info")
    if section is None or section.size > _MOST_INFO_BYTES:
        return {}
    found: dict[str, tuple[Parameter, ...]] = {}
    wanted = set(code_object.kernel_names)
    with debug_units(code_object) as units:
        for unit in units:
            for die in unit.iter_DIEs():
                name = _defined(die) & wanted
                if name:
                    children = [c for c in die.iter_children() if c.tag == "DW_TAG_formal_parameter"]
                    found[name.pop()] = tuple(_parameter(child) for child in children)
    return found


def with_names(kernel: Kernel, parameters: Sequence[Parameter]) -> Kernel:
    """The kernel with the names and types of its parameters, where its metadata has none of them."""
    explicit = kernel.explicit_arguments
    if len(parameters) != len(explicit):
        return kernel
    told = {a.offset: p for a, p in zip(explicit, parameters, strict=True)}
    return replace(
        kernel,
        arguments=tuple(
            a
            if a.is_hidden
            else replace(
                a, name=a.name or told[a.offset].name, type_name=a.type_name or told[a.offset].type_name
            )
            for a in kernel.arguments
        ),
    )


def variable_types(code_object: CodeObject, names: Collection[str]) -> dict[str, ElementType]:
    """What the module variables of those (mangled) names hold, as far as debug information says.

    Raises CodeObjectError where the debug sections are damaged.
    """
    if not code_object.has_debug_info or not names:
        return {}
    found: dict[str, ElementType] = {}
    with debug_units(code_object) as units:
        for unit in units:
            for die in unit.iter_DIEs():
                if die.tag != "DW_TAG_variable" or "DW_AT_location" not in die.attributes:
                    continue
                called = (_text(attribute_of(die, link)) for link in ("DW_AT_linkage_name", "DW_AT_name"))
                name = next((name for name in called if name in names), None)
                if name is not None and _size(_type(die)):
                    found[name] = _element(_type(die))
    return found


def definition_of(unit: CompileUnit, name: str) -> DIE | None:
    """The definition's DIE (it has code); a declaration of the same name in a namespace is not one."""
    return next((die for die in unit.iter_DIEs() if name in _defined(die)), None)


def _defined(die: DIE) -> set[str]:
    """The names of the function that the DIE defines; none where it defines none."""
    has_code = "DW_AT_low_pc" in die.attributes or "DW_AT_ranges" in die.attributes
    if die.tag != "DW_TAG_subprogram" or not has_code:
        return set()
    return {_text(attribute_of(die, link)) for link in ("DW_AT_linkage_name", "DW_AT_name")} - {""}


def _describe(unit: CompileUnit, die: DIE) -> KernelDebug:
    top = unit.get_top_DIE()
    directory = _text(attribute_of(top, "DW_AT_comp_dir"))
    unit_file = posixpath.normpath(posixpath.join(directory, _text(attribute_of(top, "DW_AT_name"))))
    file_attribute, line = attribute_of(die, "DW_AT_decl_file"), attribute_of(die, "DW_AT_decl_line")
    path = file_name(unit, directory, file_attribute.value) if file_attribute else unit_file
    parameters = tuple(
        _parameter(child) for child in die.iter_children() if child.tag == "DW_TAG_formal_parameter"
    )
    return KernelDebug(
        path,
        line.value if line else 0,
        unit_file,
        directory,
        _text(attribute_of(top, "DW_AT_producer")),
        parameters,
        _types(unit, [s for p in parameters for s in p.scalars]),
    )


def _types(unit: CompileUnit, scalars: list[Scalar]) -> dict[int, ElementType]:
    """What the pointers among `scalars` lead to, at any depth; without what cannot be read."""
    found: dict[int, ElementType] = {}
    waiting = [s.target for s in scalars if s.target]
    while waiting and len(found) < _MAX_TYPES:
        at = waiting.pop()
        if at in found:
            continue
        try:
            found[at] = element = _element(unit.dwarfinfo.get_DIE_from_refaddr(at))
        except Exception:  # see debug_sections.py
            continue
        waiting += [s.target for s in element.scalars if s.target]
    return found


def _element(die: DIE | None) -> ElementType:
    bare = _strip(die)
    return ElementType(_type_name(die), _size(bare), tuple(_scalars(bare, 0, "", 0)))


def attribute_of(die: DIE, name: str, depth: int = 0) -> Any:
    """An attribute of the DIE, or of what it completes (DW_AT_specification, DW_AT_abstract_origin)."""
    if name in die.attributes:
        return die.attributes[name]
    for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
        if link in die.attributes and depth < 4:
            return attribute_of(die.get_DIE_from_attribute(link), name, depth + 1)
    return None


def _text(attribute: Any) -> str:
    if attribute is None:
        return ""
    value = attribute.value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def file_name(unit: CompileUnit, directory: str, index: int) -> str:
    program = unit.dwarfinfo.line_program_for_CU(unit)
    if program is None:
        return ""
    version = program.header.version
    # DWARF 5, section 6.2.4: files and directories count from 0; from 1 before.
    entry = program["file_entry"][index if version >= 5 else index - 1]
    folders = program["include_directory"]
    at = entry.dir_index if version >= 5 else entry.dir_index - 1
    folder = folders[at].decode("utf-8", "replace") if 0 <= at < len(folders) else ""
    return posixpath.normpath(posixpath.join(directory, folder, entry.name.decode("utf-8", "replace")))


def _type(die: DIE) -> DIE | None:
    attribute = attribute_of(die, "DW_AT_type")
    if attribute is None:
        return None
    holder = die
    for _ in range(5):  # the attribute may sit on the DIE that this one completes
        if "DW_AT_type" in holder.attributes:
            return holder.get_DIE_from_attribute("DW_AT_type")
        link = next(
            (k for k in ("DW_AT_abstract_origin", "DW_AT_specification") if k in holder.attributes), None
        )
        if link is None:
            return None
        holder = holder.get_DIE_from_attribute(link)
    return None


def _strip(die: DIE | None) -> DIE | None:
    while die is not None and die.tag in _TRANSPARENT:
        die = _type(die)
    return die


def _type_name(die: DIE | None, depth: int = 0) -> str:
    if die is None:
        return "void"
    name = _text(attribute_of(die, "DW_AT_name"))
    if name or depth > _MAX_DEPTH:
        return name
    inner = _type_name(_type(die), depth + 1)
    if die.tag == "DW_TAG_const_type":
        return f"const {inner}"
    if die.tag in _POINTERS:
        return f"{inner}*"
    if die.tag == "DW_TAG_array_type":
        return f"{inner}[{_count(die)}]"
    return inner if die.tag in _TRANSPARENT else str(die.tag).removeprefix("DW_TAG_").removesuffix("_type")


def _parameter(die: DIE) -> Parameter:
    kind = _strip(_type(die))
    element = None
    if kind is not None and kind.tag in _POINTERS:
        element = _element(_type(kind))
    scalars = tuple(_scalars(kind, 0, "", 0))
    return Parameter(_text(attribute_of(die, "DW_AT_name")), _type_name(_type(die)), element, scalars)


def _size(die: DIE | None) -> int:
    die = _strip(die)
    if die is None:
        return 0
    attribute = attribute_of(die, "DW_AT_byte_size")
    if attribute is not None:
        return int(attribute.value)
    if die.tag in _POINTERS:
        return 8
    return _count(die) * _size(_type(die)) if die.tag == "DW_TAG_array_type" else 0


def _count(die: DIE) -> int:
    total = 1
    for child in die.iter_children():
        if child.tag != "DW_TAG_subrange_type":
            continue
        count, upper = attribute_of(child, "DW_AT_count"), attribute_of(child, "DW_AT_upper_bound")
        if count is not None and isinstance(count.value, int):
            total *= count.value
        elif upper is not None and isinstance(upper.value, int):
            total *= upper.value + 1
        else:
            return 0
    return total


def _scalars(die: DIE | None, offset: int, name: str, depth: int) -> list[Scalar]:
    """The numbers of a type, in order of address; a union gives its largest member's alone, as bytes cannot
    be both.
    """
    die = _strip(die)
    if die is None or depth > _MAX_DEPTH:
        return []
    if die.tag in _POINTERS or die.tag == "DW_TAG_ptr_to_member_type":
        target = _type(die) if die.tag in _POINTERS else None
        return [Scalar(offset, "pointer", _size(die) or 8, 1, name, target.offset if target else 0)]
    if die.tag == "DW_TAG_base_type":
        encoding = attribute_of(die, "DW_AT_encoding")
        return [
            Scalar(offset, _ENCODINGS.get(encoding.value if encoding else 0, "unknown"), _size(die), 1, name)
        ]
    if die.tag == "DW_TAG_enumeration_type":
        return [Scalar(offset, "unsigned", _size(die), 1, name)]
    if die.tag == "DW_TAG_array_type":
        return _array(die, offset, name, depth)
    if die.tag in _RECORDS:
        return _record(die, offset, name, depth)
    return []


def _array(die: DIE, offset: int, name: str, depth: int) -> list[Scalar]:
    one, count, step = _scalars(_type(die), 0, name, depth + 1), _count(die), _size(_type(die))
    if len(one) == 1 and one[0].count * one[0].size == step:
        return [Scalar(offset, one[0].encoding, one[0].size, one[0].count * count, name, one[0].target)]
    if count > 64 or not one:  # a long array of structs inside an element: its bytes stay untyped
        return []
    return [
        Scalar(offset + i * step + s.offset, s.encoding, s.size, s.count, s.name, s.target)
        for i in range(count)
        for s in one
    ]


def _record(die: DIE, offset: int, name: str, depth: int) -> list[Scalar]:
    members: list[list[Scalar]] = []
    sizes: list[int] = []
    for child in die.iter_children():
        if (
            child.tag not in ("DW_TAG_member", "DW_TAG_inheritance")
            or "DW_AT_declaration" in child.attributes
        ):
            continue
        place = attribute_of(child, "DW_AT_data_member_location")
        if "DW_AT_bit_size" in child.attributes or (place is not None and not isinstance(place.value, int)):
            continue  # bit fields and virtual bases: bytes
        label = _text(attribute_of(child, "DW_AT_name"))
        full = f"{name}.{label}" if name and label else name or label
        members.append(_scalars(_type(child), offset + (place.value if place else 0), full, depth + 1))
        sizes.append(_size(_type(child)))
    if die.tag == "DW_TAG_union_type":
        return members[max(range(len(members)), key=lambda i: sizes[i])] if members else []
    return sorted((s for group in members for s in group), key=lambda s: s.offset)
