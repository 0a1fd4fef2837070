"""Which line of a kernel called what the compiler inlined at an address, by the code object's DWARF."""

from __future__ import annotations

from collections.abc import Iterator

from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.ranges import BaseAddressEntry, RangeEntry

from kerncap.core.code.codeobject import CodeObject, CodeObjectError
from kerncap.core.code.debug_sections import debug_units
from kerncap.core.code.dwarf import attribute_of, definition_of, file_name

_BLOCKS = ("DW_TAG_lexical_block", "DW_TAG_inlined_subroutine")


def called_at(code_object: CodeObject, name: str, offset: int) -> tuple[str, int] | None:
    """The file and line at which the kernel `name` calls what is inlined `offset` bytes after its entry.

    None where nothing is inlined there, or where debug information does not say.
    """
    entry = next((s.value for s in code_object.elf.symbols if s.name == name and s.section and s.size), None)
    if entry is None or not code_object.has_debug_info or code_object.relocatable:
        return None
    try:
        with debug_units(code_object) as units:
            for unit in units:
                kernel = definition_of(unit, name)
                if kernel is not None:
                    return _call(unit, kernel, entry + offset)
    except CodeObjectError:
        return None
    return None


def _call(unit: CompileUnit, die: DIE, address: int) -> tuple[str, int] | None:
    for child in die.iter_children():
        if child.tag not in _BLOCKS or not any(a <= address < b for a, b in _ranges(unit, child)):
            continue
        if child.tag == "DW_TAG_lexical_block":
            return _call(unit, child, address)
        file, line = (child.attributes.get(f"DW_AT_call_{what}") for what in ("file", "line"))
        if file is None or line is None:
            return None
        directory = attribute_of(unit.get_top_DIE(), "DW_AT_comp_dir")
        return file_name(unit, directory.value.decode("utf-8", "replace"), file.value), line.value
    return None


def _ranges(unit: CompileUnit, die: DIE) -> Iterator[tuple[int, int]]:
    """The addresses that a block covers (DWARF 5, section 2.17)."""
    low, high = (die.attributes.get(f"DW_AT_{what}_pc") for what in ("low", "high"))
    if low is not None and high is not None:
        end = high.value if high.form == "DW_FORM_addr" else low.value + high.value
        yield low.value, end
    listed = die.attributes.get("DW_AT_ranges")
    if listed is None:
        return
    lists = unit.dwarfinfo.range_lists()
    start = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = start.value if start is not None else 0
    for row in lists.get_range_list_at_offset(listed.value, cu=unit) if lists is not None else ():
        if isinstance(row, BaseAddressEntry):
            base = row.base_address
        elif isinstance(row, RangeEntry):
            offset = 0 if getattr(row, "is_absolute", False) else base
            yield offset + row.begin_offset, offset + row.end_offset
