"""Where a kernel that runs is written: what is shown is proven, what is not proven is not shown."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import xxhash
from hip_tree import FLAGS, Tree, clang

from kerncap.core.code.names import id_text
from kerncap.core.code.reading import read_code_object
from kerncap.source.hip.running import Look, RunningCode, look

OLD = '#include "device.h"\n__global__ void attention(float* p) { p[lane()] = 1.0f; }\n'
NEW = '#include "device.h"\n\n__global__ void attention(float* p) { p[lane()] = 2.0f; }\n'


def code_of(hsaco: Path, program: Path | None = None) -> RunningCode:
    """What the interposer says of the only kernel of a code object."""
    found = read_code_object(hsaco)
    return RunningCode(found.kernel_names[0], id_text(xxhash.xxh64_intdigest(found.data)), program)


@pytest.fixture
def two(tree: Tree) -> Tree:
    """Two files that define one name, both in the database, each with its object and what was linked of
    it.
    """
    tree.write({"src/old/attention.hip": OLD, "src/attention.hip": NEW})
    rows = []
    for stem, file in (("a", "src/old/attention.hip"), ("b", "src/attention.hip")):
        made = tree.captured(file, ["-Isrc"], f"{stem}.hsaco")
        (tree.root / "build").mkdir(exist_ok=True)
        shutil.copy(made, tree.root / f"build/{stem}.hsaco")
        rows.append((f"../{file}", [*clang(), *FLAGS, "-c", f"../{file}", "-o", f"{stem}.o"]))
    tree.database(rows)
    return tree


@pytest.mark.parametrize(
    ("object_name", "file", "line"), [("a", "src/old/attention.hip", 2), ("b", "src/attention.hip", 3)]
)
def test_of_two_files_that_define_a_name_the_one_that_runs_is_found(
    two: Tree, object_name: str, file: str, line: int
) -> None:
    found = look(code_of(two.root / f"build/{object_name}.hsaco"), [two.root], 20)
    assert found.files == 2
    assert found.place is not None
    assert (found.place.file, found.place.line) == (two.root / file, line)


def test_an_object_that_is_not_what_runs_proves_nothing(two: Tree) -> None:
    code = code_of(two.root / "build/b.hsaco")
    (two.root / "build/b.hsaco").unlink()  # built again, or the program brought its own
    assert look(code, [two.root], 20) == Look(None, 2)


def test_the_only_file_of_that_name_is_not_enough(tree: Tree) -> None:
    tree.write({"src/attention.hip": NEW})
    assert look(code_of(tree.captured("src/attention.hip", ["-Isrc"])), [tree.root], 20) == Look(None, 1)


def test_debug_information_of_what_runs_names_the_file(tree: Tree) -> None:
    tree.write({"src/attention.hip": NEW, "src/old/attention.hip": OLD})
    program = tree.captured("src/attention.hip", ["-Isrc", "-g"], "program")
    found = look(code_of(program, program), [tree.root], 20)
    assert found.place is not None
    assert (found.place.file, found.place.line) == (tree.root / "src/attention.hip", 3)


def test_a_kernel_in_a_header_is_found_by_the_unit_that_reads_it(tree: Tree) -> None:
    header = '#pragma once\n#include "device.h"\n'
    header += "template <typename T>\n__global__ void attention(T* p) { p[lane()] = T(2); }\n"
    unit = '#include "attention.h"\ntemplate __global__ void attention<float>(float*);\n'
    tree.write({"src/attention.h": header, "src/unit.hip": unit, "other/attention.hip": OLD})
    (tree.root / "build").mkdir()
    made = tree.captured("src/unit.hip", ["-Isrc"], "unit.hsaco")
    shutil.copy(made, tree.root / "build/unit.hsaco")
    tree.database([("../src/unit.hip", [*clang(), *FLAGS, "-c", "../src/unit.hip", "-o", "unit.o"])])
    found = look(code_of(made), [tree.root], 20)
    assert found.place is not None
    assert (found.place.file, found.place.line) == (tree.root / "src/attention.h", 4)


def test_two_definitions_in_the_file_give_the_file_alone(tree: Tree) -> None:
    text = '#include "device.h"\n#ifdef FAST\n__global__ void attention(float* p) { p[lane()] = 2.0f; }\n'
    text += "#else\n__global__ void attention(float* p) { p[lane()] = 1.0f; }\n#endif\n"
    tree.write({"src/attention.hip": text})
    (tree.root / "build").mkdir()
    made = tree.captured("src/attention.hip", ["-Isrc"], "k.hsaco")
    shutil.copy(made, tree.root / "build/k.hsaco")
    words = [*clang(), *FLAGS, "-c", "../src/attention.hip", "-o", "k.o"]
    tree.database([("../src/attention.hip", words)])
    found = look(code_of(made), [tree.root], 20)
    assert found.place is not None
    assert (found.place.file, found.place.line) == (tree.root / "src/attention.hip", 0)


def test_what_cannot_be_read_is_no_error(two: Tree) -> None:
    code = code_of(two.root / "build/b.hsaco", program=two.root / "nowhere")
    (two.root / "build/b.hsaco").write_bytes(b"\x7fELF damaged")
    subprocess.run(["mkfifo", str(two.root / "build/a.o")], check=True, timeout=10)
    assert look(code, [two.root, two.root / "gone"], 20).place is None
