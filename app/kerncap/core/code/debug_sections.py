"""A code object's DWARF by pyelftools, behind one door: sections that are damaged are an error of kerncap's.

pyelftools raises what its parsing happens to run into: its own errors and construct's, AssertionError,
ValueError, KeyError, TypeError, struct.error, OverflowError, RecursionError. Hence any Exception is taken for
damaged sections here.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

from elftools.dwarf.compileunit import CompileUnit
from elftools.elf.elffile import ELFFile

from kerncap.core.code.codeobject import CodeObject, CodeObjectError
from kerncap.core.errors import KerncapError


@contextmanager
def debug_units(code_object: CodeObject) -> Iterator[Iterator[CompileUnit]]:
    """The compilation units of a code object that has debug information. All that is read of them is to be
    read within: CodeObjectError is raised where that cannot be done.
    """
    try:
        file = ELFFile(io.BytesIO(bytes(code_object.data)))
        yield file.get_dwarf_info(relocate_dwarf_sections=code_object.relocatable).iter_CUs()
    except KerncapError:
        raise
    except Exception as error:
        why = f"{type(error).__name__} {error}".rstrip()
        raise CodeObjectError(
            f"{code_object.source}: its debug information cannot be read, it is damaged or of a form that is "
            f"not known ({why}); nothing is taken from it."
        ) from error
