"""What a kernel's own declaration says it only reads."""

from __future__ import annotations

import re

from kerncap.core.capture.records import Capture
from kerncap.core.judge.dtypes import argument_pointers, parameter_types, reproducer_types
from kerncap.core.replay.launch import captured_kernel

# "float const*", "const float*": not "float* const", which may be written to.
_CONST = re.compile(r"(const\b[^*&]*|\bconst)\s*[*&]$")


def declared_read_only(capture: Capture) -> set[int]:
    """The regions (RegionRecord::id) that arguments point to, all of them pointers to const: by the kernel's
    C++ name, else by its source beside the capture. C++ lets a kernel cast that away; none is known to.
    """
    kernel = captured_kernel(capture)
    if kernel is None:
        return set()
    count = len(kernel.explicit_arguments)
    known = (parameter_types(capture.dispatch.demangled), reproducer_types(capture, kernel.name))
    types = next((names for names in known if names is not None and len(names) == count), None)
    if types is None:
        return set()
    read: set[int] = set()
    written: set[int] = set()
    for index, address in argument_pointers(capture, kernel):
        region = capture.region_at(address)
        if region is not None:
            (read if _CONST.search(types[index].strip()) else written).add(region.id)
    return read - written
