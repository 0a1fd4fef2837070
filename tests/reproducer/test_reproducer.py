"""What extract leaves to edit, and rebuilding it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hip_tree import FLAGS, Tree, clang
from project import make, program, reproducer

from kerncap.cli.extract_command import show
from kerncap.core.build.recompile import recompile
from kerncap.core.build.toolchain import CompileError
from kerncap.core.code.reading import machine_code, read_code_object
from kerncap.core.errors import UsageError
from kerncap.core.extract.extract import ExtractResult

HEADER_UNIT = """#include "device.h"
#include "in header.h"
template __global__ void axpy<float>(float*, int);
"""
HEADER_KERNEL = """#pragma once
template <typename T>
__global__ void axpy(T* p, int n) { if (lane() < n) p[lane()] += 1; }
"""


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def out(tree: Tree, tmp_path: Path) -> Path:
    """A reproducer, moved after it was written as extract does it."""
    hsaco = program(tree)
    info = reproducer(tmp_path / ".partial", hsaco, tree.root)
    assert (info.variant, info.reason, info.rebuilt) == ("kernel_variant.cpp", None, "identical")
    assert info.files == ("kernel_variant.cpp", "deps/include/scale.h", "deps/src/device.h")
    assert info.definition == "kernel_variant.cpp:3"
    os.rename(tmp_path / ".partial", tmp_path / "isolated")
    return tmp_path / "isolated"


def code(path: Path) -> bytes:
    made = read_code_object(path)
    found = machine_code(made, made.kernel_names[0])
    assert found
    return found


def test_unchanged_copy_rebuilds_to_the_captured_code(out: Path, tree: Tree) -> None:
    assert code(recompile(out).object) == code(tree.root.parent / "captured/captured.hsaco")


def test_edits_of_variant_and_of_headers_count_and_leave_the_program_alone(out: Path, tree: Tree) -> None:
    before = {p: p.read_bytes() for p in tree.root.rglob("*") if p.is_file()}
    original = code(recompile(out).object)
    edit(out / "kernel_variant.cpp", "i < n", "i < n - 1")
    changed = code(recompile(out).object)
    assert changed != original
    edit(out / "deps/include/scale.h", "x * FACTOR", "x + FACTOR")
    assert code(recompile(out).object) not in (original, changed)
    assert {p: p.read_bytes() for p in tree.root.rglob("*") if p.is_file()} == before


def test_a_kernel_in_a_header_is_edited_there(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree.write({"src/k.hip": HEADER_UNIT, "include/in header.h": HEADER_KERNEL})
    flags = [*FLAGS, "-I../include", "-c", "../src/k.hip", "-o", "k.o"]
    tree.database([("../src/k.hip", [*clang(), *flags])])
    hsaco = tree.captured("src/k.hip", ["-Iinclude", "-Isrc"])
    out = tmp_path / "out"
    info = reproducer(out, hsaco, tree.root)
    assert info.edit == ("deps/include/in header.h", 3)
    assert (
        "$EDITOR 'deps/include/in header.h'   # the kernel is at line 3\nmake rec"
        in (out / "README.md").read_text()
    )
    show(
        ExtractResult(
            *("out", "f", "f", "0", 1, "sim:gfx942", "gfx942", (1, 1, 1), (1, 1, 1), 1, 1, 1, 1, 0.1),
            source=info,
            baseline={"verdict": "IDENTICAL"},
        )
    )
    assert "Next: edit 'out/deps/include/in header.h':3, then make -C out" in capsys.readouterr().out


def test_tree_moved_away_still_rebuilds_the_same(out: Path, tree: Tree) -> None:  # S6
    original = code(recompile(out).object)
    tree.root.rename(tree.root.with_name("elsewhere"))
    shutil.rmtree(tree.root.parent / "captured")
    assert code(recompile(out).object) == original
    edit(out / "deps/include/scale.h", "x * FACTOR", "x + FACTOR")
    assert code(recompile(out).object) != original


def test_tree_changed_since_does_not_matter(out: Path, tree: Tree) -> None:  # S6
    original = code(recompile(out).object)
    for path in tree.root.rglob("*.h*"):
        path.write_text("#error changed\n")
    assert code(recompile(out).object) == original


def test_directory_of_the_command_gone_but_sources_there(out: Path, tree: Tree) -> None:  # S6
    original = code(recompile(out).object)
    shutil.rmtree(tree.root / "build")
    assert code(recompile(out).object) == original


def test_a_copy_that_is_gone_is_named(out: Path) -> None:  # S6
    (out / "deps/include/scale.h").unlink()
    with pytest.raises(UsageError, match=r"deps/include/scale\.h is gone"):
        recompile(out)


@pytest.mark.parametrize("moved", [False, True])
def test_compile_errors_name_the_copies(out: Path, tree: Tree, moved: bool) -> None:
    recompile(out)
    edit(out / "kernel_variant.cpp", "int i = lane();", "int i = lane()")
    edit(out / "deps/include/scale.h", "return x", "return y")
    if moved:
        tree.root.rename(tree.root.with_name("elsewhere"))
    with pytest.raises(CompileError) as caught:
        recompile(out)
    assert "kernel_variant.cpp:3:" in caught.value.output
    assert "deps/include/scale.h:3:" in caught.value.output
    assert str(tree.root) not in caught.value.output
    assert not (out / "optimized.hsaco").exists(), "an older object must not be taken for the new one"


def test_kernel_renamed_or_with_other_arguments_is_refused(out: Path) -> None:
    edit(out / "kernel_variant.cpp", "scale<float>(float*, int)", "scale<double>(double*, int)")
    with pytest.raises(UsageError, match="no longer defines") as caught:
        recompile(out)
    said = caught.value.message
    assert "void scale<float>(float*, int); it defines void scale<double>(double*, int)" in said
    assert "_Z" not in said


def test_other_arguments_under_the_same_symbol_are_refused(tree: Tree, tmp_path: Path) -> None:
    tree.write(
        {"src/k.hip": '#include "device.h"\nextern "C" __global__ void k(float* p) { p[lane()] = 1; }\n'}
    )
    tree.database([("../src/k.hip", [*clang(), *FLAGS, "-c", "../src/k.hip"])])
    reproducer(tmp_path / "r", tree.captured("src/k.hip"), tree.root)
    edit(tmp_path / "r/kernel_variant.cpp", "float* p", "float* p, int n")
    with pytest.raises(UsageError, match="other arguments"):
        recompile(tmp_path / "r")


@pytest.mark.parametrize(("flags", "mark"), [([], ""), (["-fgpu-rdc", "-cuid=77"], ".intern.")])
@pytest.mark.parametrize("moved", [False, True])
def test_kernel_with_internal_linkage_keeps_its_symbol(
    tree: Tree, tmp_path: Path, flags: list[str], mark: str, moved: bool
) -> None:
    source = '#include "device.h"\nnamespace { __global__ void k(float* p) { p[lane()] = 1; } }\n'
    source += "void* use = (void*)k;\n"
    tree.write({"src/k.hip": source})
    tree.database([("../src/k.hip", [*clang(), *FLAGS, *flags[:1], "-c", "../src/k.hip"])])
    hsaco = tree.captured("src/k.hip", flags)
    (symbol,) = read_code_object(hsaco).kernel_names
    assert mark in symbol
    out = tmp_path / "r"
    info = reproducer(out, hsaco, tree.root)
    assert info.rebuilt == "identical", info
    if moved:
        tree.root.rename(tree.root.with_name("elsewhere"))
    made = read_code_object(recompile(out).object)
    assert made.kernel_names == [symbol]
    assert made.descriptor(symbol).entry_offset


def test_make_from_anywhere_with_a_hostile_name(tree: Tree, tmp_path: Path) -> None:  # C7
    hsaco = program(tree)
    name = (
        "void k<(type)39, $(shell touch "
        + str(tmp_path / "touched")
        + ") `id` '\"; > {{ 7*7 }} ```>"
        + "x" * 5000
    )
    out = tmp_path / "iso lated" / "we$ird, 'name' #1"
    reproducer(out, hsaco, tree.root, demangled=name)
    done = make(out, "recompile")
    assert done.returncode == 0, done.stderr
    assert (out / "optimized.hsaco").is_file()
    assert not (tmp_path / "touched").exists()
    assert name in (out / "README.md").read_text()
    assert make(out, "clean").returncode == 0
    assert not (out / "optimized.hsaco").exists()


def test_make_reports_a_compile_error_and_fails(out: Path) -> None:
    edit(out / "kernel_variant.cpp", "i < n", "i < undeclared")
    done = make(out, "recompile")
    assert done.returncode != 0
    assert "kernel_variant.cpp:3" in done.stderr
    assert "undeclared" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_source_the_readme_says_why(tree: Tree, tmp_path: Path) -> None:
    hsaco = program(tree)
    empty = tmp_path / "empty"
    empty.mkdir()
    out = tmp_path / "r"
    info = reproducer(out, hsaco, empty)
    assert info.variant is None
    assert info.reason
    assert info.reason in (out / "README.md").read_text()
    assert not (out / "kernel_variant.cpp").exists()
    done = make(out, "recompile")
    assert done.returncode == 2
    assert "no source" in done.stderr
    with pytest.raises(UsageError, match="nothing to recompile"):
        recompile(out)


def test_damaged_or_newer_compile_file_is_refused(out: Path) -> None:
    path = out / "compile.json"
    document = json.loads(path.read_text())
    for change in (
        {"schema": "kerncap-compile/9"},
        {"variant": "../../etc/passwd"},
        {"files": 3},
        {"kernel_arguments": [[1]]},
    ):
        path.write_text(json.dumps({**document, **change}))
        with pytest.raises(UsageError, match=rf"compile\.json.* {next(iter(change)).split('_')[0]}|passwd"):
            recompile(out)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (
            lambda text: text.replace('",\n  "target"', '"\n  "target"'),
            r"line 4, column 3: a comma is missing",
        ),
        (lambda text: text + "}\n", r"line \d+, column 1: something follows the end"),
        (lambda text: text.replace('"symbol":', "symbol:"), r"line 3, column 3: a name in double quotes"),
        (lambda _: "[" * 100_000, "nested too deep"),
    ],
)
def test_a_slip_in_what_is_there_to_be_edited_is_told_by_line(
    out: Path, damage: Callable[[str], str], told: str
) -> None:
    path = out / "compile.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(UsageError, match=rf"{re.escape(str(path))}: .*{told}") as caught:
        recompile(out)
    assert "Error(" not in caught.value.message


def test_no_compiler_says_what_to_install(out: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from kerncap.core.build import toolchain
    from kerncap.core.errors import DeviceError

    path = out / "compile.json"
    document = json.loads(path.read_text())
    document["arguments"][:2] = ["/opt/gone/hipcc"]
    path.write_text(json.dumps(document))
    monkeypatch.setattr(toolchain, "zig", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    with pytest.raises(DeviceError, match=r"/opt/gone/hipcc is not on this machine.*kerncap\[sim\]"):
        recompile(out)


def test_a_mistake_comes_before_the_compiler_that_found_it(out: Path, tmp_path: Path) -> None:
    """Where another compiler than the program's is used, that is said once, and after the error."""
    path = out / "compile.json"
    document = json.loads(path.read_text())
    document["arguments"][:2] = ["/opt/gone/hipcc"]
    path.write_text(json.dumps(document))
    done = make(out, "recompile")
    assert (done.returncode, done.stderr) == (0, "")
    edit(out / "kernel_variant.cpp", "int i = lane();", "int i = lane()")
    with pytest.raises(CompileError) as caught:
        recompile(out)
    assert caught.value.message == "kernel_variant.cpp does not compile."
    output = caught.value.output
    assert output.startswith("kernel_variant.cpp:3:")
    assert output.count("/opt/gone/hipcc is not on this machine; ") == 1
    assert output.index("error:") < output.index("/opt/gone/hipcc")


def test_a_directory_that_cannot_be_written_is_told(out: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        recompile(out, tmp_path / "file/optimized.hsaco")


def test_linked_directories_reach_the_copies(tree: Tree, tmp_path: Path) -> None:
    tree.write(
        {
            "real/scale.h": '#pragma once\n#include "device.h"\n'
            "static __device__ float twice(float x) { return x * 2; }\n"
        }
    )
    (tree.root / "include").symlink_to("real")
    from project import KERNEL

    tree.write({"src/k.hip": KERNEL})
    tree.database([("../src/k.hip", [*clang(), *FLAGS, "-I../include", "-I../src", "-c", "../src/k.hip"])])
    out = tmp_path / "r"
    reproducer(out, tree.captured("src/k.hip", ["-Iinclude", "-Isrc"]), tree.root)
    original = code(recompile(out).object)
    edit(out / "deps/include/scale.h", "x * 2", "x + 2")
    assert code(recompile(out).object) != original


def test_the_unchanged_build_that_differs_is_told(tree: Tree, tmp_path: Path) -> None:
    hsaco = program(tree)
    rows = json.loads((tree.root / "build/compile_commands.json").read_text())
    rows[0]["arguments"] = [a if a != "-O3" else "-O1" for a in rows[0]["arguments"]]
    edit_database = tree.root / "build/compile_commands.json"
    edit_database.write_text(json.dumps(rows))
    tree.write(
        {
            "include/scale.h": (tree.root / "include/scale.h")
            .read_text()
            .replace("x * FACTOR", "x * FACTOR + 1")
        }
    )
    info = reproducer(tmp_path / "r", hsaco, tree.root)
    assert info.rebuilt == "differs"
    assert any("not the captured one byte for byte" in n for n in info.notes)
    assert "byte for byte" in (tmp_path / "r/README.md").read_text()


def test_files_are_listed_by_git_as_plain_text(out: Path) -> None:
    """The overlay is what clang's own parser takes: a broken one would silently compile the originals."""
    overlay = json.loads((out / "vfs.yaml").read_text())
    assert {r["name"].rsplit("/", 1)[-1] for r in overlay["roots"]} == {"src", "include"}
    for root in overlay["roots"]:
        for entry in root["contents"]:
            assert (out / entry["external-contents"]).is_file()


def test_module_runs_as_a_command(out: Path) -> None:
    import sys

    from project import APP

    words = [sys.executable, "-m", "kerncap.cli.recompile"]
    environment = {**os.environ, "PYTHONPATH": str(APP)}
    done = subprocess.run([*words, "."], cwd=out, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("optimized.hsaco: ")
    done = subprocess.run(
        [*words, "--help"], cwd=out, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2


def test_a_source_directory_that_was_named_in_vain_is_said(tree: Tree, tmp_path: Path) -> None:
    hsaco = program(tree)
    other = tmp_path / "other"
    (other / "more").mkdir(parents=True)
    (other / "more" / "different.hip").write_text("__global__ void different(int* p) { *p = 1; }\n")
    for name, language in (("looked", "auto"), ("told", "none")):
        info = reproducer(tmp_path / name, hsaco, other, language=language)
        assert info.to_json()["source_dirs"] == [{"directory": str(other), "used": False}]
        assert any(f"--source-dir {other}" in note for note in info.notes)
        assert f"--source-dir {other}" in (tmp_path / name / "README.md").read_text()
    used = reproducer(tmp_path / "used", hsaco, tree.root)
    assert used.to_json()["source_dirs"] == [{"directory": str(tree.root), "used": True}]
    assert not any("--source-dir" in note for note in used.notes)
