"""The numpy dtypes against the C++ header that the interposer is compiled with."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kerncap.core.code import layout

NATIVE = Path(__file__).resolve().parents[2] / "native"
STRUCTS = {"Control": layout.CONTROL, "LiveHeader": layout.LIVE_HEADER, "Row": layout.ROW}
ENUMS = {
    "RequestKind": layout.RequestKind,
    "MemoryMode": layout.MemoryMode,
    "CaptureState": layout.CaptureState,
    "KernelKind": layout.KernelKind,
    "ProcessState": layout.ProcessState,
    "ClockKind": layout.ClockKind,
}


def compiler() -> list[str]:
    for name in ("g++", "clang++", "c++"):
        found = shutil.which(name)
        if found:
            return [found]
    pytest.skip("no C++ compiler")


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[int]]]:
    """Offsets, sizes and enumerators as the C++ compiler sees them."""
    where = tmp_path_factory.mktemp("layout")
    lines = [
        '#include "live/layout.h"',
        "#include <cstdio>",
        "using namespace kerncap::live;",
        "int main() {",
    ]
    lines.append('std::printf("{");')
    for name, dtype in STRUCTS.items():
        assert dtype.names is not None
        lines.append(f'std::printf("\\"{name}\\": {{\\"sizeof\\": [%zu, 0]", sizeof({name}));')
        for field in dtype.names:
            lines.append(
                f'std::printf(", \\"{field}\\": [%zu, %zu]", offsetof({name}, {field}), '
                f"sizeof((({name}*)nullptr)->{field}));"
            )
        lines.append('std::printf("}, ");')
    for name, enum in ENUMS.items():
        lines.append(f'std::printf("\\"{name}\\": {{");')
        for index, member in enumerate(enum):
            comma = ", " if index else ""
            lines.append(
                f'std::printf("{comma}\\"{member.name}\\": [%u, 0]", '
                f"(unsigned){name}::{member.name.lower()});"
            )
        lines.append('std::printf("}, ");')
    lines.append(
        'std::printf("\\"constants\\": '
        '{\\"version\\": [%u, 0], \\"row_bytes\\": [%u, 0], ", kVersion, kRowBytes);'
    )
    lines.append(
        'std::printf("\\"max_rows\\": [%u, 0], \\"rows\\": [%llu, 0], \\"names\\": [%llu, 0]}}", kMaxRows, '
        "(unsigned long long)kRowsOffset, (unsigned long long)kNamesOffset); }"
    )
    source = where / "layout.cpp"
    source.write_text("\n".join(lines))
    program = where / "layout"
    subprocess.run(
        [*compiler(), "-std=c++20", "-Wno-invalid-offsetof", f"-I{NATIVE}", str(source), "-o", str(program)],
        check=True,
        timeout=120,
    )
    return json.loads(subprocess.run([str(program)], check=True, capture_output=True, timeout=10).stdout)


@pytest.mark.parametrize("name", STRUCTS)
def test_every_field_lies_where_the_header_puts_it(
    name: str, native: dict[str, dict[str, list[int]]]
) -> None:
    dtype = STRUCTS[name]
    assert dtype.fields is not None
    ours = {field: [value[1], value[0].itemsize] for field, value in dtype.fields.items()}
    ours["sizeof"] = [dtype.itemsize, 0]
    assert ours == native[name]


@pytest.mark.parametrize("name", ENUMS)
def test_every_enumerator_has_the_value_of_the_header(
    name: str, native: dict[str, dict[str, list[int]]]
) -> None:
    assert {member.name: [member.value, 0] for member in ENUMS[name]} == native[name]


def test_constants(native: dict[str, dict[str, list[int]]]) -> None:
    assert native["constants"] == {
        "version": [layout.VERSION, 0],
        "row_bytes": [layout.ROW_BYTES, 0],
        "max_rows": [layout.MAX_ROWS, 0],
        "rows": [layout.ROWS_OFFSET, 0],
        "names": [layout.NAMES_OFFSET, 0],
    }


def test_header_declares_no_field_that_is_not_read() -> None:
    """A field added to the header alone would go unseen by the offsets above."""
    text = (NATIVE / "live" / "layout.h").read_text()
    for name, dtype in STRUCTS.items():
        found = re.search(rf"struct (?:alignas\(\w+\) )?{name} {{(.*?)\n}};", text, re.DOTALL)
        assert found is not None, name
        body = found[1]
        declared = []
        for line in body.splitlines()[1:]:
            code = line.split("//")[0].strip()
            if code.endswith(";"):
                declared.append(code[:-1].split()[-1].split("[")[0])
        assert declared == list(dtype.names or ()), name


def test_rows_are_padded_to_their_slot() -> None:
    assert layout.ROW.itemsize == layout.ROW_BYTES
    assert np.zeros(3, layout.ROW).nbytes == 3 * layout.ROW_BYTES
