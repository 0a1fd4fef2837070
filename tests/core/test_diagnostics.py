"""What compilers say, as a list: real output of clang, LLD, nvcc, ptxas and Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kerncap.core.build.diagnostics import Diagnostic, counts, first_error, first_error_text, parse

CLANG = """\
In file included from kernel_variant.cpp:5:
deps/src/dot.h:12:5: warning: unused variable 'x' [-Wunused-variable]
   12 |     int x;
      |         ^
kernel_variant.cpp:28:19: error: use of undeclared identifier 'zero'
   28 |         int dot = zero;
      |                   ^~~~
kernel_variant.cpp:31:3: note: to match this '{'
   31 |   {
      |   ^
1 warning and 1 error generated when compiling for gfx942.
"""
NVCC = """\
kernel.cu(14): error: identifier "blockIdy" is undefined
    int i = blockIdy.x;
            ^

kernel.cu(20): warning #177-D: variable "unused" was declared but never referenced
    int unused;
        ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

1 error detected in the compilation of "kernel.cu".
"""
TRITON = """\
Traceback (most recent call last):
  File "/home/u/run.py", line 40, in <module>
    add[(1,)](x)
  File "/usr/lib/python3/dist-packages/triton/runtime/jit.py", line 345, in <lambda>
    return lambda *args: self.run(grid=grid, *args)
triton.compiler.errors.CompilationError: at 4:8:
def add(x):
    pid = tl.program_id(0)
    y = tl.load(x)
        ^
NameError('y is not defined')
"""


def test_clang_with_places_context_and_notes() -> None:
    warning, error, note = parse(CLANG)
    assert (warning.severity, warning.path, warning.line, warning.column) == (
        "warning",
        "deps/src/dot.h",
        12,
        5,
    )
    assert error.message == "use of undeclared identifier 'zero'"
    assert error.place == "kernel_variant.cpp:28:19"
    assert error.context == ("   28 |         int dot = zero;", "      |                   ^~~~")
    assert note.severity == "note"
    assert note.context == ("   31 |   {", "      |   ^")
    assert first_error([warning, error, note]) == 1
    assert counts([warning, error, note]) == (1, 1)


def test_colours_and_odd_paths() -> None:
    (found,) = parse("\x1b[1m/tmp/a b:c/k.cpp:3:7: \x1b[0;31merror: \x1b[0mbad \x1b[1mthing\x1b[0m\n")
    assert found == Diagnostic("error", "bad thing", "/tmp/a b:c/k.cpp", 3, 7)


def test_linker_and_driver_errors_have_no_place() -> None:
    found = parse(
        "ld.lld: error: undefined symbol: helper(int)\n>>> referenced by k.cpp\n>>>               k.o:(f)\n"
        "clang: error: no such file or directory: 'gone.cpp'\n"
    )
    assert [d.message for d in found] == [
        "undefined symbol: helper(int)",
        "no such file or directory: 'gone.cpp'",
    ]
    assert found[0].context[0] == ">>> referenced by k.cpp"
    assert first_error(found) == 0


def test_nvcc_and_ptxas() -> None:
    error, warning = parse(NVCC)
    assert (error.severity, error.path, error.line) == ("error", "kernel.cu", 14)
    assert error.context[0].strip() == "int i = blockIdy.x;"
    assert (warning.severity, warning.line) == ("warning", 20)
    (assembler,) = parse("ptxas /tmp/k.ptx, line 88; error   : Unknown symbol 'x'\nptxas fatal: never mind")[
        :1
    ]
    assert (assembler.path, assembler.line, assembler.severity) == ("/tmp/k.ptx", 88, "error")


def test_triton_names_the_users_own_line_and_the_reason() -> None:
    (found,) = parse(TRITON)
    assert (found.path, found.line) == ("/home/u/run.py", 40)
    assert found.message == "triton.compiler.errors.CompilationError: at 4:8: NameError('y is not defined')"
    assert "    y = tl.load(x)" in found.context


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("def f():\n    return nothing\nf()\n", 2, "NameError: name 'nothing' is not defined"),
        ("x = 1\ny = (\n", 2, "SyntaxError: '(' was never closed"),
        ("import json\njson.loads('{')\n", 2, "json.decoder.JSONDecodeError: Expecting property name"),
    ],
)
def test_what_python_itself_prints(tmp_path: Path, source: str, line: int, message: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(source)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    if "Traceback" not in done.stderr:  # a SyntaxError of the program itself comes without that line
        done.stderr = f"Traceback (most recent call last):\n{done.stderr}"
    (found,) = parse(done.stderr)
    assert (found.path, found.line, found.severity) == (str(path), line, "error")
    assert found.message.startswith(message)


def test_an_exception_while_handling_another_gives_both(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("try:\n    1 / 0\nexcept ZeroDivisionError:\n    int('x')\n")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    first, second = parse(done.stderr)
    assert (first.message, first.line) == ("ZeroDivisionError: division by zero", 2)
    assert second.line == 4


def test_other_text_is_no_message() -> None:
    assert parse("") == []
    assert parse("make: nothing to be done\n1 warning generated.\nhttp://a:80/b: hello\n") == []


def test_the_compilers_own_output(tmp_path: Path) -> None:
    from kerncap.core.build.toolchain import zig

    path = tmp_path / "k.c"
    path.write_text("int f(void) {\n  return missing;\n}\nint g(void) { return 1 }\n")
    program = zig()
    assert program
    done = subprocess.run(
        [program, "clang", "-c", "-w", str(path), "-o", str(tmp_path / "k.o")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    found = [d for d in parse(done.stderr) if d.severity == "error" and d.path]
    assert [(Path(d.path).name, d.line, d.column) for d in found] == [("k.c", 2, 10), ("k.c", 4, 23)]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            "In file included from /p/unit.hip:2:\n/p/k.h:4:10: fatal error: 'm.h' file not found\n",
            "/p/k.h:4:10: error: 'm.h' file not found",
        ),
        (
            '/p/k.cu(7): warning #177-D: unused\n/p/k.cu(9): error: expected a ";"\n',
            '/p/k.cu:9: error: expected a ";"',
        ),
        ("nvcc fatal   : Unknown option '-zz'\n", "error: Unknown option '-zz'"),
        ("\n  nothing that is known\nmore\n", "nothing that is known"),
    ],
)
def test_the_first_error_as_text(output: str, said: str) -> None:
    assert first_error_text(output) == said
