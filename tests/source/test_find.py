"""S1-S6: the unit that makes a captured kernel, from small programs that each go wrong in one way."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
from hip_tree import FLAGS, TARGET, Tree, clang

from kerncap.core.build import toolchain
from kerncap.core.build.compile_command import device_arguments
from kerncap.core.build.device_compile import DeviceCompile
from kerncap.source.hip import find as find_module

SCALE = """#include "device.h"
template <typename T, int N>
__global__ void __launch_bounds__(256) scale(T* p) { p[lane()] *= N; }
"""


def command(tree: Tree, unit: str, *more: str) -> list[str]:
    return [*clang(), *FLAGS, *more, "-c", unit, "-o", f"{Path(unit).stem}.o"]


def test_launch_bounds_template_and_attributes(tree: Tree) -> None:  # S1
    tree.write(
        {
            "src/scale.h": SCALE,
            "src/k.hip": '#include "scale.h"\ntemplate __global__ void scale<float, 3>(float*);\n',
        }
    )
    tree.database([("../src/k.hip", command(tree, "../src/k.hip"))])
    finding = tree.find(tree.captured("src/k.hip"))
    assert finding.reason is None
    assert finding.language == "hip"
    assert finding.command
    assert finding.command.file == tree.root / "src/k.hip"
    assert finding.definition
    assert (finding.definition.file, finding.definition.line) == (
        tree.root / "src/scale.h",
        3,
    )
    assert [p.name for p in finding.dependencies] == ["k.hip", "scale.h", "device.h"]


def test_header_in_several_units_gives_the_one_that_instantiates(tree: Tree) -> None:  # S2
    files = {"src/scale.h": SCALE}
    rows = []
    for i, kind in enumerate(["float", "int", "double", "short"]):
        files[f"src/u{i}.hip"] = (
            f'#include "scale.h"\ntemplate __global__ void scale<{kind}, {i}>({kind}*);\n'
        )
        rows.append((f"../src/u{i}.hip", command(tree, f"../src/u{i}.hip")))
    tree.write(files).database(rows)
    finding = tree.find(tree.captured("src/u2.hip"))
    assert finding.command
    assert finding.command.file.name == "u2.hip"


def test_same_unit_built_twice_with_other_defines(tree: Tree) -> None:  # S2
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, WIDTH>(float*);\n"})
    rows = [("../src/k.hip", command(tree, "../src/k.hip", f"-DWIDTH={w}")) for w in (1, 2, 3)]
    tree.database(rows)
    finding = tree.find(tree.captured("src/k.hip", ["-DWIDTH=2"]))
    assert finding.command
    assert "-DWIDTH=2" in finding.command.arguments


def test_object_file_of_the_build_decides_without_compiling(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:  # S2
    tree.write({"src/scale.h": SCALE})
    rows = []
    for i in range(3):
        tree.write(
            {f"src/u{i}.hip": f'#include "scale.h"\ntemplate __global__ void scale<float, {i}>(float*);\n'}
        )
        rows.append((f"../src/u{i}.hip", command(tree, f"../src/u{i}.hip")))
    tree.database(rows)
    for i in range(3):
        shutil.copy(tree.captured(f"src/u{i}.hip", name=f"u{i}.hsaco"), tree.root / f"build/u{i}.o")
    tried: list[str] = []
    probe = find_module.cached_probe
    monkeypatch.setattr(
        find_module, "cached_probe", lambda c: (tried.append(c.command.file.name), probe(c))[1]
    )
    finding = tree.find(tree.captured("src/u1.hip"))
    assert finding.command
    assert finding.command.file.name == "u1.hip"
    assert tried == ["u1.hip"]


def test_debug_information_names_the_unit(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:  # S2
    tree.write({"src/scale.h": SCALE})
    rows = []
    for i in range(3):
        tree.write(
            {f"src/u{i}.hip": f'#include "scale.h"\ntemplate __global__ void scale<float, {i}>(float*);\n'}
        )
        rows.append((f"../src/u{i}.hip", command(tree, f"../src/u{i}.hip")))
    tree.database(rows)
    tried: list[str] = []
    probe = find_module.cached_probe
    monkeypatch.setattr(
        find_module, "cached_probe", lambda c: (tried.append(c.command.file.name), probe(c))[1]
    )
    finding = tree.find(tree.captured("src/u2.hip", ["-g"]))
    assert finding.command
    assert finding.command.file.name == "u2.hip"
    assert tried == ["u2.hip"]
    assert finding.definition
    assert (finding.definition.file.name, finding.definition.line) == ("scale.h", 3)


@pytest.mark.parametrize(("original", "line"), [("there", 3), ("gone", 3), ("other", 4)])
def test_a_program_that_was_built_in_another_directory(tree: Tree, original: str, line: int) -> None:
    """The definition is in the files that the variant is made of, not in those of the debug information."""
    tree.write(
        {
            "src/scale.h": SCALE,
            "other/scale.h": "// another one\n",
            "src/k.hip": '#include "scale.h"\ntemplate __global__ void scale<float, 3>(float*);\n',
        }
    )
    hsaco = tree.captured("src/k.hip", ["-g"])
    first = tree.root
    copy = Tree(first.with_name("a copy"))
    shutil.copytree(first, copy.root)
    copy.database([("../src/k.hip", command(copy, "../src/k.hip"))])
    if original == "gone":
        shutil.rmtree(first)
    if original == "other":
        copy.write({"src/scale.h": f"// moved\n{SCALE}"})
    finding = copy.find(hsaco)
    assert finding.definition
    assert (finding.definition.file, finding.definition.line) == (copy.root / "src/scale.h", line)


@pytest.mark.parametrize("words", [["zig", "clang"], ["python-zig", "clang"], ["/gone/zig", "clang"]])
def test_zig_for_zig_is_nothing_to_tell(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, 3>(float*);\n"})
    tree.database([("../src/k.hip", [*words, *FLAGS, "-c", "../src/k.hip"])])
    finding = tree.find(tree.captured("src/k.hip"))
    assert finding.command
    assert finding.notes == ()


def test_a_guessed_command_misses_no_compiler(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, 3>(float*);\n"})
    finding = tree.find(tree.captured("src/k.hip"))
    assert finding.command
    assert "hipcc" not in " ".join(finding.notes)
    compile_ = DeviceCompile.of(finding.command, TARGET)
    assert compile_.compiler.note == ""


def test_line_tables_alone_name_the_unit_and_the_text_the_line(tree: Tree) -> None:
    tree.write(
        {
            "src/scale.h": SCALE,
            "src/k.hip": '#include "scale.h"\ntemplate __global__ void scale<float, 3>(float*);\n',
        }
    )
    tree.database([("../src/k.hip", command(tree, "../src/k.hip"))])
    finding = tree.find(tree.captured("src/k.hip", ["-gline-tables-only"]))
    assert finding.definition
    assert (finding.definition.file.name, finding.definition.line) == ("scale.h", 3)


@pytest.mark.parametrize("header", ["src/inc/scale.h", "include/scale.h"])
def test_the_unit_that_debug_information_names_is_compiled_with_what_lies_around_it(
    tree: Tree, header: str
) -> None:
    tree.write(
        {
            header: SCALE,
            "src/k.hip": '#include "scale.h"\ntemplate __global__ void scale<float, 3>(float*);\n',
        }
    )
    folder = f"-I{(tree.root / header).parent}"
    captured = tree.captured("src/k.hip", ["-g", folder, "-Isrc"])
    finding = tree.find(captured, source_dirs=())
    assert finding.command
    assert finding.command.file == tree.root / "src/k.hip"
    assert {"-g", folder} <= set(finding.command.arguments)  # -g may move instructions
    without = tree.find(tree.captured("src/k.hip", [folder, "-Isrc"]))
    assert without.command
    assert "-g" not in without.command.arguments


def test_why_the_unit_that_debug_information_names_does_not_compile(tree: Tree) -> None:
    tree.write({"src/k.hip": '#include "device.h"\n__global__ void k(float* p) { p[lane()] *= FACTOR; }\n'})
    captured = tree.captured("src/k.hip", ["-g", "-DFACTOR=3"])
    reason = tree.find(captured, source_dirs=()).reason
    assert reason
    assert "undeclared identifier 'FACTOR'" in reason
    assert "-D gives a define that is missing" in reason
    assert tree.find(captured, source_dirs=(), defines=("FACTOR=3",)).command
    (tree.root / "src/k.hip").unlink()
    reason = tree.find(captured, source_dirs=()).reason
    assert reason
    assert f"the unit that the debug information names, {tree.root}/src/k.hip, is not here" in reason


def test_macro_that_pastes_the_name(tree: Tree) -> None:  # S1
    tree.write(
        {
            "src/k.hip": '#include "device.h"\n'
            "#define MAKE(T) __global__ void fill_##T(T* p) { p[lane()] = 1; }\n"
            "\nMAKE(float)\n",
            "src/other.hip": '#include "device.h"\n__global__ void other(float* p) { p[lane()] = 2; }\n',
        }
    )
    tree.database([(f"../src/{n}.hip", command(tree, f"../src/{n}.hip")) for n in ("other", "k")])
    finding = tree.find(tree.captured("src/k.hip"))
    assert finding.command
    assert finding.command.file.name == "k.hip"
    assert finding.definition
    assert finding.definition.line == 4


def test_without_compile_commands_includes_are_found(tree: Tree) -> None:  # S3
    tree.write(
        {
            "include/deep/kernels/scale.h": SCALE.replace("device.h", "deep/device2.h"),
            "include/deep/device2.h": '#include "device.h"\n',
            "src/k.hip": "#include <kernels/scale.h>\ntemplate __global__ void scale<float, 3>(float*);\n",
        }
    )
    hsaco = tree.captured("src/k.hip", ["-Iinclude/deep", "-Iinclude", "-Isrc"])
    finding = tree.find(hsaco)
    assert finding.command
    assert finding.command.file.name == "k.hip"
    assert any("No compile command" in n for n in finding.notes)
    assert {p.name for p in finding.dependencies} == {"k.hip", "scale.h", "device2.h", "device.h"}


def test_neither_source_nor_commands(tree: Tree) -> None:  # S3
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, 2>(float*);\n"})
    finding = tree.find(tree.captured("src/k.hip"), source_dirs=())
    assert finding.command is None
    assert finding.reason
    assert "no compile_commands.json is near the program" in finding.reason


def test_relative_paths_spaces_response_file_and_launchers(tree: Tree) -> None:  # S3
    tree.write(
        {
            "my headers/scale.h": SCALE,
            "src/k.hip": '#include "scale.h"\ntemplate __global__ void scale<float, WIDTH>(float*);\n',
            "build/flags.rsp": '-I"../my headers" -I../src\n  -DWIDTH=7 "-DTEXT=a b" @more.rsp',
            "build/more.rsp": "-DMORE='c d'",
        }
    )
    flags = [
        "ccache",
        "compiler_check=content",
        *clang(),
        *FLAGS,
        "@flags.rsp",
        "-c",
        "../src/k.hip",
        "-o",
        "k.o",
    ]
    tree.database([("../src/k.hip", flags)])
    finding = tree.find(tree.captured("src/k.hip", ["-Imy headers", "-Isrc", "-DWIDTH=7"]))
    assert finding.command, finding.reason
    assert {"-I../my headers", "-DTEXT=a b", "-DMORE=c d"} <= set(finding.command.arguments)
    assert tree.root / "my headers/scale.h" in finding.dependencies


def test_a_path_that_leaves_a_linked_directory_by_its_parent(tree: Tree) -> None:  # S3
    tree.write(
        {
            "real/lib/gcc/empty": "",
            "real/include/part.h": '#include "device.h"\nstatic __device__ int part() { return 7; }\n',
            "src/k.hip": '#include "part.h"\n__global__ void k(int* x) { x[lane()] = part(); }\n',
        }
    )
    (tree.root / "lib").symlink_to("real/lib")
    # As gcc's own directories are found in a system root: through lib, and out of it by "..".
    flags = [f"-I{tree.root}/lib/gcc/../../include", f"-I{tree.root}/src", "-DX"]
    hsaco = tree.captured("src/k.hip", flags)
    tree.database([("../src/k.hip", [*clang(), *FLAGS, *flags, "-c", "../src/k.hip", "-o", "k.o"])])
    found = tree.find(hsaco)
    assert tree.root / "real/include/part.h" in found.dependencies
    assert all(path.exists() for path in found.dependencies)


def test_command_as_one_string(tree: Tree) -> None:  # S3
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, WIDTH>(float*);\n"})
    line = (
        " ".join([f"'{w}'" if " " in w else w for w in command(tree, "../src/k.hip")])
        + ' -DWIDTH=4 -DQ=\\"x\\"'
    )
    row = {"directory": str(tree.root / "build"), "file": "../src/k.hip", "command": line, "output": "k.o"}
    (tree.root / "build").mkdir()
    (tree.root / "build/compile_commands.json").write_text(json.dumps([row]))
    finding = tree.find(tree.captured("src/k.hip", ["-DWIDTH=4"]))
    assert finding.command
    assert '-DQ="x"' in finding.command.arguments


@pytest.mark.parametrize(
    "action",
    [
        ["-S", "-Xclang", "-emit-obj"],
        ["-c", "-Xclang", "-dependency-file", "-Xclang", "k.d", "-Xclang", "-MT", "-Xclang", "k.o"],
        ["-E", "-MD", "-MF", "k.d", "-MT", "k.o", "-save-temps", "-v"],
        ["-S", "-emit-llvm", "-fgpu-rdc", "-flto=thin"],
        [
            "../src/other.hip",
            "other.o",
            "-shared",
            "-Llib",
            "-lm",
            "-Wl,-rpath,x",
            "-Xlinker",
            "-z",
            "-fuse-ld=lld",
        ],
    ],
)
def test_whatever_the_command_was_to_make(tree: Tree, action: list[str]) -> None:  # S3
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, 2>(float*);\n"})
    tree.database([("../src/k.hip", [*clang(), *FLAGS, *action, "../src/k.hip", "-o", "k.out"])])
    finding = tree.find(tree.captured("src/k.hip"))
    assert finding.command, finding.reason
    assert not finding.notes
    DeviceCompile.of(finding.command, TARGET).build(tree.root.parent / "out.hsaco")
    assert sorted(p.name for p in (tree.root / "build").iterdir()) == ["compile_commands.json"]


def test_wrapper_script_is_run_and_gone_one_is_passed_by(tree: Tree) -> None:  # S3
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, WIDTH>(float*);\n"})
    wrapper = tree.root / "build/my wrapper"
    tree.write(
        {"build/my wrapper": f'#!/bin/sh\nexec "{clang()[0]}" clang -DWIDTH=5 -nogpuinc -nogpulib "$@"\n'}
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    words = ["./my wrapper", "-x", "hip", "--offload-arch=gfx942", "-O3", "-c", "../src/k.hip", "-o", "k.o"]
    tree.database([("../src/k.hip", words)])
    hsaco = tree.captured("src/k.hip", ["-DWIDTH=5"])
    finding = tree.find(hsaco)
    assert finding.command
    assert finding.command.arguments[0] == "./my wrapper"
    wrapper.unlink()
    finding = tree.find(hsaco, defines=("WIDTH=5",))
    assert finding.command, finding.reason
    assert any("my wrapper is not on this machine" in n for n in finding.notes)


def test_defines_of_the_user_are_added(tree: Tree) -> None:
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, WIDTH>(float*);\n"})
    tree.database([("../src/k.hip", command(tree, "../src/k.hip"))])
    hsaco = tree.captured("src/k.hip", ["-DWIDTH=9"])
    without = tree.find(hsaco)
    assert without.command is None
    assert without.reason
    assert "WIDTH" in without.reason
    assert tree.find(hsaco, defines=("WIDTH=9",)).command


@pytest.mark.parametrize(
    "asked",
    [
        ["--offload-arch=native"],
        ["--offload-arch=gfx90a,gfx942", "--offload-arch=gfx1100"],
        ["--offload-arch", "gfx942:sramecc+:xnack-"],
        ["--cuda-gpu-arch=gfx906", "--amdgpu-target=gfx908"],
        [],
    ],
)
def test_any_arch_is_mapped_to_the_captured_one(tree: Tree, asked: list[str]) -> None:  # S4
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, 2>(float*);\n"})
    words = [
        *clang(),
        "-x",
        "hip",
        *asked,
        "-nogpuinc",
        "-nogpulib",
        "-O3",
        "-c",
        "../src/k.hip",
        "-o",
        "k.o",
    ]
    tree.database([("../src/k.hip", words)])
    finding = tree.find(tree.captured("src/k.hip"))
    assert finding.command, finding.reason
    options = device_arguments(finding.command, TARGET)
    assert [o for o in options if "gfx" in o or "native" in o] == ["--offload-arch=gfx942"]
    made = DeviceCompile.of(finding.command, TARGET).build(tree.root.parent / "out.hsaco")
    assert made.object.stat().st_size > 0


def test_python_and_captures_are_not_source(tree: Tree) -> None:  # S5
    tree.write(
        {
            "ops.py": "def scale(p):\n    '''__global__ void scale(float* p) {}'''\n",
            "scale.txt": "__global__ void scale(float* p) {}",
            "isolated/scale/kernel_variant.cpp": SCALE
            + "template __global__ void scale<float, 2>(float*);\n",
            "isolated/scale/vfs.yaml": "{}",
            "isolated/scale/capture/manifest.json": "{}",
        }
    )
    other = Tree(tree.root.parent / "other").write(
        {"src/device.h": (tree.root / "src/device.h").read_text(), "src/k.hip": SCALE}
    )
    (other.root / "src/k.hip").write_text(SCALE + "template __global__ void scale<float, 2>(float*);\n")
    finding = tree.find(other.captured("src/k.hip"))
    assert finding.command is None
    assert finding.language == "unknown"
    assert finding.reason
    assert "No kernel scale" in finding.reason


def test_changed_source_says_so(tree: Tree) -> None:  # S6
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, 2>(float*);\n"})
    tree.database([("../src/k.hip", command(tree, "../src/k.hip"))])
    hsaco = tree.captured("src/k.hip")
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<double, 2>(double*);\n"})
    finding = tree.find(hsaco)
    assert finding.command is None
    assert finding.reason
    assert "another version" in finding.reason


def test_build_directory_gone(tree: Tree) -> None:  # S6
    unit = "#include <scale.h>\ntemplate __global__ void scale<float, 2>(float*);\n"
    tree.write({"src/scale.h": SCALE, "src/k.hip": unit})
    path = tree.database([("../src/k.hip", command(tree, "../src/k.hip", "-I../src"))])
    hsaco = tree.captured("src/k.hip", ["-Isrc"])
    rows = json.loads(path.read_text())
    path.unlink()
    (tree.root / "compile_commands.json").write_text(json.dumps(rows))
    (tree.root / "build").rmdir()
    finding = tree.find(hsaco)
    assert finding.command
    assert finding.dependencies == tuple(tree.root / "src" / n for n in ("k.hip", "scale.h", "device.h"))


def test_response_file_gone_is_told(tree: Tree) -> None:  # S3
    tree.write({"src/k.hip": SCALE + "template __global__ void scale<float, W>(float*);\n"})
    tree.database([("../src/k.hip", command(tree, "../src/k.hip", "@gone.rsp"))])
    finding = tree.find(tree.captured("src/k.hip", ["-DW=2"]))
    assert finding.command is None
    assert any("gone.rsp" in n for n in finding.notes)


def test_without_a_compiler_the_object_file_still_decides(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write({"src/scale.h": SCALE})
    rows = []
    for i in range(2):
        unit = f'#include "scale.h"\ntemplate __global__ void scale<float, {i}>(float*);\n'
        tree.write({f"src/u{i}.hip": unit})
        rows.append((f"../src/u{i}.hip", ["/opt/gone/hipcc", "-c", f"../src/u{i}.hip", "-o", f"u{i}.o"]))
    tree.database(rows)
    for i in range(2):
        shutil.copy(tree.captured(f"src/u{i}.hip", name=f"u{i}.hsaco"), tree.root / f"build/u{i}.o")
    hsaco = tree.captured("src/u1.hip")
    monkeypatch.setattr(toolchain, "zig", lambda: None)
    monkeypatch.setenv("PATH", str(tree.root))
    monkeypatch.setenv("ROCM_PATH", str(tree.root))
    finding = tree.find(hsaco)
    assert finding.command
    assert finding.command.file.name == "u1.hip"
    assert any("not compiled" in n for n in finding.notes)
    assert [p.name for p in finding.dependencies] == ["u1.hip", "scale.h", "device.h"]


def test_damaged_database_is_a_note(tree: Tree) -> None:
    tree.write(
        {
            "src/k.hip": SCALE + "template __global__ void scale<float, 2>(float*);\n",
            "build/compile_commands.json": "[{",
        }
    )
    finding = tree.find(tree.captured("src/k.hip"))
    assert finding.command
    left_out = "compile_commands.json was left out: line 1, column 3: a name in double quotes is expected."
    assert any(left_out in n for n in finding.notes)


def test_probe_is_kept_until_a_header_changes(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write(
        {
            "src/scale.h": SCALE,
            "src/k.hip": '#include "scale.h"\ntemplate __global__ void scale<float, W>(float*);\n',
        }
    )
    tree.write(
        {"src/w.h": "#define W 2\n", "src/k.hip": '#include "w.h"\n' + (tree.root / "src/k.hip").read_text()}
    )
    tree.database([("../src/k.hip", command(tree, "../src/k.hip"))])
    hsaco = tree.captured("src/k.hip")
    calls: list[str] = []
    probe = DeviceCompile.probe
    monkeypatch.setattr(DeviceCompile, "probe", lambda self: (calls.append("x"), probe(self))[1])
    assert tree.find(hsaco).command
    assert tree.find(hsaco).command
    assert len(calls) == 1
    tree.write({"src/w.h": "#define W 33\n"})
    assert tree.find(hsaco).command is None
    assert len(calls) == 2
