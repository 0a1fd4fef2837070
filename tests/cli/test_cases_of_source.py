"""The situations S1-S7 of tests/CASES.md from end to end: a program, the command lines, the exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from whole import DEVICE, built, document, kerncap

from kerncap.core.build.toolchain import rocm_clang
from kerncap.core.loop.watching import Sources
from support.build import PROGRAMS, Program, build_program
from support.package import APP

pytestmark = built


def copy_of(name: str, where: Path) -> tuple[Program, Path]:
    """A program and its source in directories of their own, with compile commands that say so."""
    program = build_program(name)
    source, folder = where / "tree", where / "build"
    source.mkdir()
    for path in [*PROGRAMS.glob(f"{name}*"), *PROGRAMS.glob("*.h")]:
        shutil.copy(path, source)
    shutil.copytree(program.folder, folder)
    rows = json.loads((folder / "compile_commands.json").read_text())
    text = json.dumps(rows).replace(str(PROGRAMS), str(source)).replace(str(program.folder), str(folder))
    (folder / "compile_commands.json").write_text(text)
    return Program(name, folder / name, folder, source), source


def extract(kernel: str, program: Program, cwd: Path, *options: str) -> Any:
    return document("extract", kernel, "-o", "out", *options, "--", str(program.executable), cwd=cwd)


def make(target: str, reproducer: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(APP), "KERNCAP_DEVICE": DEVICE}
    command = ["make", "-C", str(reproducer), target]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def edit_commands(program: Program, **replaced: str) -> None:
    """Words of the compile commands, by what they begin with (`_` for `-`)."""
    path = program.folder / "compile_commands.json"
    rows = json.loads(path.read_text())
    for row in rows:
        for old, new in replaced.items():
            begin = old.replace("_", "-")
            row["arguments"] = [new if word.startswith(begin) else word for word in row["arguments"]]
    path.write_text(json.dumps(rows))


def test_a_template_and_what_stands_before_a_kernels_name(tmp_path: Path) -> None:  # S1
    program = build_program("templates")
    text = (program.source / "templates.hip").read_text()
    made = extract("_Z5scaleIL4Kind39EfEvPT0_i", program, tmp_path)
    line = 1 + text[: text.index("__global__ void __launch_bounds__(256) scale(")].count("\n")
    assert made["source"]["definition"] == f"kernel_variant.cpp:{line}"
    make("validate", tmp_path / "out")


def test_two_instances_have_directories_and_names_of_their_own(tmp_path: Path) -> None:  # S1
    program = str(build_program("templates").executable)
    for kernel in ("scale<(Kind)39, float>", "scale<(Kind)39, int>", "scale<(Kind)0, float>"):
        shown = kerncap("extract", kernel, "--language", "none", "--", program, cwd=tmp_path).stdout
        assert f"\n{kernel} (" in shown
    error = document("extract", "scale<(Kind)39, int>", "--", program, cwd=tmp_path, code=2)["error"]
    assert "isolated/scale-2 exists already" in error
    listed = kerncap("list", cwd=tmp_path).stdout
    found = [line.split("  ")[0] for line in listed.splitlines()[1:]]
    assert found == ["scale<(Kind)39, float>", "scale<(Kind)39, int>", "scale<(Kind)0, float>"]
    captures = document("list", cwd=tmp_path)["captures"]
    assert len({one["id"] for one in captures}) == 3
    assert [one["directory"] for one in captures] == [f"isolated/scale{n}" for n in ("", "-2", "-3")]


def test_by_its_id_a_kernel_goes_to_its_own_name_and_is_refused_there(tmp_path: Path) -> None:
    program = str(build_program("templates").executable)
    kernels = {k["name"]: k["id"] for k in document("profile", "--", program, cwd=tmp_path)["kernels"]}
    ident = next(ident for name, ident in kernels.items() if "scale<(Kind)39, float>" in name)
    words = ("--language", "none", "--", program)
    assert document("extract", ident[:8], *words, cwd=tmp_path)["output"] == "isolated/scale"
    for pattern in (ident[:6], ident, "scale<(Kind)39, float>"):
        error = document("extract", pattern, "--", "/nowhere/at/all", cwd=tmp_path, code=2)["error"]
        assert "isolated/scale exists already" in error
    assert document("extract", ident[:8], "--force", *words, cwd=tmp_path)["output"] == "isolated/scale"
    other = next(ident for name, ident in kernels.items() if "scale<(Kind)39, int>" in name)
    assert document("extract", other[:8], *words, cwd=tmp_path)["output"] == "isolated/scale-2"


def test_a_name_that_two_units_define(tmp_path: Path) -> None:  # S2
    program, source = copy_of("templates", tmp_path)
    report = document("profile", "--", str(program.executable), cwd=tmp_path)
    variants = set()
    for kernel in report["kernels"]:
        if kernel["symbol"] == "twin":
            extract(kernel["id"], program, tmp_path, "--force")
            make("validate", tmp_path / "out")
            variants.add((tmp_path / "out" / "kernel_variant.cpp").read_text())
    assert variants == {(source / f"{unit}.hip").read_text() for unit in ("templates", "templates_twin")}


def test_no_compile_commands(tmp_path: Path) -> None:  # S3
    program, source = copy_of("in_place", tmp_path)
    (program.folder / "compile_commands.json").unlink()
    made = extract("advance", program, tmp_path, "--source-dir", str(source))
    assert made["source"]["variant"] == "kernel_variant.cpp"
    (note,) = (n for n in made["source"]["notes"] if "No compile command of this unit is known" in n)
    assert ("kerncap's HIP headers" in note) is (rocm_clang() is None)
    make("validate", tmp_path / "out")
    made = extract("advance", program, tmp_path, "--force")  # debug information names the unit
    assert made["source"]["variant"] == "kernel_variant.cpp"


def test_kerncaps_own_headers_are_none_of_the_programs(tmp_path: Path) -> None:
    program, source = copy_of("in_place", tmp_path)
    unit = source / "in_place.hip"
    unit.write_text(f'#include <hip/hip_runtime.h>\n#include "here/reduce.h"\n{unit.read_text()}')
    (source / "here").mkdir()
    (source / "here/reduce.h").write_text("#pragma once\n")
    stripped = (program.folder / "in_place.hsaco").read_bytes().replace(b".debug_info", b".unread_inf")
    (program.folder / "in_place.hsaco").write_bytes(stripped)  # else that names the original unit
    (program.folder / "compile_commands.json").unlink()
    made = extract("advance", program, tmp_path, "--source-dir", str(source))
    own = ["kernel_variant.cpp", "deps/here/reduce.h"]
    assert made["source"]["files"] == own
    out = tmp_path / "out"
    assert Sources(out).paths == [out / name for name in (*own, "compile.json")]
    make("validate", out)
    if rocm_clang() is None:  # they are in the reproducer all the same: it builds where kerncap is not
        assert (out / "deps/kerncap-hip/hip/hip_runtime.h").is_file()


def test_a_unit_that_does_not_compile_is_told_with_its_first_error(tmp_path: Path) -> None:  # S3
    program, source = copy_of("in_place", tmp_path)
    text = (source / "in_place.hip").read_text()
    (source / "in_place.hip").write_text(f'#include "first.h"\n{text}')
    (source / "first.h").write_text("#include <no/such/header.h>\n")
    stripped = (program.folder / "in_place.hsaco").read_bytes().replace(b".debug_info", b".unread_inf")
    (program.folder / "in_place.hsaco").write_bytes(stripped)  # else that names the original unit
    (program.folder / "compile_commands.json").unlink()
    done = kerncap(
        "extract",
        "advance",
        "-o",
        "cut",
        "--source-dir",
        str(source),
        "--",
        str(program.executable),
        cwd=tmp_path,
    )
    assert "first.h:1:10: error: 'no/such/header.h' file not found. No compile_commands" in done.stdout
    assert f"--source-dir {source} was searched, and holds no source of this kernel that" in done.stderr


@pytest.mark.parametrize("arch", ["native", "gfx942:sramecc+:xnack-", "gfx90a"])
def test_another_target_in_the_compile_command(arch: str, tmp_path: Path) -> None:  # S4
    program, _ = copy_of("in_place", tmp_path)
    edit_commands(program, __offload_arch=f"--offload-arch={arch}")
    assert extract("advance", program, tmp_path)["source"]["rebuilt"] == "identical"
    make("validate", tmp_path / "out")


def test_a_python_function_of_a_similar_name(tmp_path: Path) -> None:  # S5
    program, source = copy_of("in_place", tmp_path)
    (source / "advance.py").write_text("import triton\n\n@triton.jit\ndef advance(x, scale, n):\n    pass\n")
    made = extract("advance", program, tmp_path, "--source-dir", str(source))
    assert made["source"]["language"] == "hip"
    assert (tmp_path / "out" / "kernel_variant.cpp").read_text() == (source / "in_place.hip").read_text()


def test_the_tree_is_gone_or_another_since(tmp_path: Path) -> None:  # S6
    program, source = copy_of("in_place", tmp_path)
    extract("advance", program, tmp_path)
    (source / "in_place.hip").write_text("#error changed\n")
    make("validate", tmp_path / "out")
    shutil.rmtree(source)
    shutil.rmtree(program.folder)
    make("validate", tmp_path / "out")


def test_triton_is_refused_and_not_guessed_at(tmp_path: Path) -> None:  # S7
    program = str(build_program("in_place").executable)
    words = ("advance", "--language", "triton", "-o", "out", "--", program)
    assert "'auto', 'hip', 'cuda', 'none'" in document("extract", *words, cwd=tmp_path, code=2)["error"]
    assert list(tmp_path.iterdir()) == []
