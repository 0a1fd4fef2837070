"""Triton kernels from end to end: programs of ours launch them by HIP's module API on the simulated GPU."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kerncap.core.loop.candidates import CandidateResult, candidates
from kerncap.core.native import REPLAYER, SIM_HIP, SIM_RUNTIME, find_native
from support.package import APP
from tui.workbench.workbench_stage import real_workbench

PROGRAMS = Path(__file__).parent / "programs"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),  # Triton may have to be installed first
    pytest.mark.skipif(
        any(find_native(name) is None for name in (REPLAYER, SIM_RUNTIME, SIM_HIP)),
        reason="the native part is not built (KERNCAP_NATIVE_DIR, or pip install .)",
    ),
]
Extract = Callable[..., Any]


def kerncap(*words: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "KERNCAP_DEVICE": "sim:gfx942",
        "PYTHONPATH": str(APP),
        "TRITON_CACHE_DIR": str(cwd / "cache"),
    }
    command = [sys.executable, "-m", "kerncap", *words]
    done = subprocess.run(command, cwd=cwd, env=environment, text=True, timeout=240, capture_output=True)
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == code, f"{words}\n{done.stdout}{done.stderr}"
    return done


def document(*words: str, cwd: Path, code: int = 0) -> Any:
    return json.loads(kerncap(*words, "--json", cwd=cwd, code=code).stdout)


def make(target: str, reproducer: Path, code: int = 0) -> str:
    environment = {**os.environ, "KERNCAP_PYTHON": sys.executable, "PYTHONPATH": str(APP)}
    words = ["make", "-s", "-C", str(reproducer), target]
    done = subprocess.run(words, env=environment, text=True, timeout=240, capture_output=True)
    assert (done.returncode == 0) == (code == 0), done.stdout + done.stderr
    return done.stdout + done.stderr


def edit(reproducer: Path, *pairs: tuple[str, str]) -> None:
    path = reproducer / "kernel_variant.py"
    text = path.read_text()
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)


@pytest.fixture
def extract(triton_python: str, tmp_path: Path) -> Extract:
    """Extracts a kernel of a program into tmp_path/out; the document."""

    def run(kernel: str, program: str, *arguments: str, options: tuple[str, ...] = ()) -> Any:
        command = [triton_python, "-W", "ignore", str(PROGRAMS / program), *arguments]
        words = ("extract", kernel, "-o", "out", "--json", *options, "--", *command)
        text = kerncap(*words, cwd=tmp_path).stdout
        return json.loads(text[text.index("{\n") :])

    return run


@pytest.mark.parametrize(
    ("kernel", "program", "arguments"),
    [
        ("add_kernel", "add.py", ()),
        ("modules_kernel", "modules.py", ()),
        ("softmax_kernel", "worker.py", ()),
        *(
            (f"{name}_kernel", "kernels.py", (name,))
            for name in ("softmax", "layer_norm", "matmul", "attention", "moe", "convert")
        ),
    ],
)
def test_a_kernel_is_rebuilt_to_the_same_code_object_and_replays(
    kernel: str, program: str, arguments: tuple[str, ...], extract: Extract, tmp_path: Path
) -> None:
    made = extract(kernel, program, *arguments)
    assert made["baseline"]["verdict"] == "IDENTICAL"
    assert (made["source"]["language"], made["source"]["variant"]) == ("triton", "kernel_variant.py")
    assert (made["source"]["rebuilt"], made["source"]["notes"]) == ("identical", [])
    out = tmp_path / "out"
    make("recompile", out)
    (captured,) = (out / "capture" / "code").iterdir()
    assert (out / "optimized.hsaco").read_bytes() == captured.read_bytes()
    assert "IDENTICAL" in make("validate", out)


def test_the_profile_calls_it_triton(triton_python: str, tmp_path: Path) -> None:
    command = [triton_python, "-W", "ignore", str(PROGRAMS / "kernels.py"), "moe"]
    done = kerncap("profile", "--json", "--", *command, cwd=tmp_path)
    kernels = json.loads(done.stdout[done.stdout.index("{") :])["kernels"]
    assert [(k["name"], k["kind"]) for k in kernels] == [("moe_kernel", "triton")]


def test_an_edit_of_the_kernel_or_of_a_helper_counts(extract: Extract, tmp_path: Path) -> None:
    extract("add_kernel", "add.py")
    out = tmp_path / "out"
    edit(out, ("ACTIVATION(x + y)", "ACTIVATION(x - y)"))
    assert "FAIL" in make("validate", out, code=1)
    edit(out, ("ACTIVATION(x - y)", "ACTIVATION(x + y)"))
    assert "IDENTICAL" in make("validate", out)
    helper = out / "deps" / "helpers.py"
    helper.write_text(helper.read_text().replace("tl.constexpr(0.25)", "tl.constexpr(0.5)"))
    assert "FAIL" in make("validate", out, code=1)


def test_the_pinned_configuration_is_one_edit(extract: Extract, tmp_path: Path) -> None:  # S7
    extract("matmul_kernel", "kernels.py", "matmul")
    out = tmp_path / "out"
    text = (out / "kernel_variant.py").read_text()
    assert '"grid": (2, 2, 1),  # programs, not threads' in text
    assert '"num_warps": 4' in text
    edit(out, ('"grid": (2, 2, 1)', '"grid": (4, 2, 1)'), ('"num_warps": 4', '"num_warps": 1'))
    edit(out, ("'BM': 32", "'BM': 16"))
    said = make("validate", out)
    assert "IDENTICAL" in said
    assert "launched as 4x2x1 programs of 64 threads" in said
    assert "captured were 2x2x1 programs of 256 threads" in said
    edit(out, ('"grid": (4, 2, 1)', '"grid": (2, 2, 1)'))  # half of the rows are left out
    assert "FAIL" in make("validate", out, code=1)


def test_an_option_that_is_left_out_is_told_with_the_default(extract: Extract, tmp_path: Path) -> None:
    extract("attention_kernel", "kernels.py", "attention")
    out = tmp_path / "out"
    edit(out, ('        "num_warps": 2,\n', ""), ("            'kpack': 1,\n", ""))
    said = make("recompile", out)
    (warning,) = (line for line in said.splitlines() if "warning:" in line)
    assert warning.endswith(
        "warning: pinned() no longer has 'num_warps'; captured was num_warps=2, and it is compiled with "
        "Triton's default, num_warps=4"
    )
    assert "IDENTICAL" in make("validate", out)


def test_values_are_kept_exactly(extract: Extract, tmp_path: Path) -> None:  # S7
    extract("modules_kernel", "modules.py")
    text = (tmp_path / "out" / "kernel_variant.py").read_text()
    for line in (
        "'MISSING': None",
        "'PAIR': (2, float(\"inf\"))",
        "'TYPE': tl.float32",
        "SLOPE = tl.constexpr(3.0)",
    ):
        assert line in text
    assert "SLOPE = tl.constexpr(0.25)" in (tmp_path / "out" / "deps" / "helpers.py").read_text()


def test_candidates_are_timed_and_judged(extract: Extract, triton_python: str, tmp_path: Path) -> None:
    command = [triton_python, "-W", "ignore", str(PROGRAMS / "kernels.py"), "attention"]
    done = kerncap("profile", "--json", "--", *command, cwd=tmp_path)
    kernels = json.loads(done.stdout[done.stdout.index("{") :])["kernels"]
    chosen = next(k["id"] for k in kernels if k["calls"] == 3)  # once tried, twice used
    made = extract("attention_kernel", "kernels.py", "attention")
    assert (made["id"], made["dispatch"]) == (chosen, 2)
    assert "captured is the one that it chose, BM=32, BN=32, num_warps=2" in made["warnings"][0]
    found = document("replay", "out", "--candidates", cwd=tmp_path)
    assert found["tuned"]
    rows = found["candidates"]
    assert [row["program_ms"] for row in rows] == [3.0, 1.0, 2.0]
    assert [(row["captured"], row["chosen"]) for row in rows] == [
        (False, False),
        (True, True),
        (False, False),
    ]
    assert rows[1]["verdict"] == "IDENTICAL"
    assert all(row["median_ns"] > 0 for row in rows)
    asyncio.run(pane_shows(tmp_path / "out"))
    # Another order of the sum over keys: some of the output differs, by little.
    for row in (rows[0], rows[2]):
        assert row["verdict"] == "FAIL"
        assert 0 < row["changed_share"] < 0.5
        assert 0 < row["max_abs"] < 1e-2


def test_a_dispatch_by_name_is_counted_after_the_tuning(
    extract: Extract, triton_python: str, tmp_path: Path
) -> None:
    """attention_kernel is launched three times: once to time it, and twice."""
    assert (
        extract("attention_kernel", "kernels.py", "attention", options=("--dispatch", "2"))["dispatch"] == 3
    )
    command = [triton_python, "-W", "ignore", str(PROGRAMS / "kernels.py"), "attention"]
    words = ["extract", "attention_kernel", "--dispatch", "3", "-o", "third", "--", *command]
    said = kerncap(*words, cwd=tmp_path, code=5).stderr
    assert "attention_kernel was launched 2 times, not counting the 3 launches by which its autotuner" in said
    assert "dispatch 3 was asked for" in said
    assert not (tmp_path / "third").exists()
    # A part of two names: the program is run again for the one that was chosen.
    made = extract("kernel", "kernels.py", "softmax", "attention", options=("--dispatch", "2", "--force"))
    assert "the program was run again for it" in made["warnings"][0]
    assert (made["kernel"], made["dispatch"]) == ("attention_kernel", 3)


def test_candidates_of_an_edit_say_so_and_are_of_one_source(
    extract: Extract, triton_python: str, tmp_path: Path
) -> None:
    extract("attention_kernel", "kernels.py", "attention", options=("--dispatch", "2"))
    out = tmp_path / "out"
    assert document("replay", "out", "--candidates", cwd=tmp_path)["edited"] == []
    edit(out, ("result / total", "3 * result / total"))
    found = document("replay", "out", "--candidates", cwd=tmp_path)
    assert found["edited"] == ["kernel_variant.py"]
    assert [row["verdict"] for row in found["candidates"]] == ["FAIL"] * 3
    said = kerncap("replay", "out", "--candidates", cwd=tmp_path).stdout
    at = said.index("kernel_variant.py was edited since the extraction: all rows are of the edit")
    assert at < said.index("verdict")

    # An edit while they run is of none of them.
    def undo(_: CandidateResult) -> None:
        text = (out / "capture" / "source" / "kernel_variant.py").read_text()
        (out / "kernel_variant.py").write_text(text)

    found = candidates(out, device="sim:gfx942", iterations=3, on_result=undo)
    assert [row.verdict for row in found.rows] == ["FAIL"] * 3

    # Without a Python that has Triton, `make recompile` says how to name one.
    path = out / "compile.json"
    plan = json.loads(path.read_text())
    plan["arguments"][0] = str(tmp_path / "gone" / "python")
    path.write_text(json.dumps(plan))
    path = out / "capture" / "triton.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "triton_root": str(tmp_path / "gone")}))
    said = make("recompile", out, code=1)
    assert "has no Triton: name a Python that has it in KERNCAP_TRITON_PYTHON." in said
    assert "gone/python is gone" in said
    assert "does not compile" not in said


async def pane_shows(reproducer: Path) -> None:
    """The workbench's pane has what is pinned and the program's times at once, and the replays' by `T`."""
    async with real_workbench(reproducer, size=(200, 50)) as bench:
        await bench.attempts(1)
        await bench.pilot.press("6")
        before = bench.shows("config")
        assert "BM=32" in before
        assert "1.000 ms" in before
        assert "IDENTICAL" not in before
        assert "edited" not in before
        await bench.pilot.press("T")
        await bench.until(lambda: bench.told.startswith("The capture was replayed under each"), limit_s=240)
        after = bench.shows("config")
        assert (after.count("IDENTICAL"), after.count("FAIL"), after.count("1.000x")) == (1, 2, 1)


def test_memory_has_the_types_of_the_signature(extract: Extract, tmp_path: Path) -> None:
    extract("convert_kernel", "kernels.py", "convert")
    edit(
        tmp_path / "out",
        ("value.to(tl.float8e4b8)", "(2 * value).to(tl.float8e4b8)"),
        ("value.to(tl.bfloat16)", "(-value).to(tl.bfloat16)"),
    )
    make("recompile", tmp_path / "out")
    judged = document("validate", "out", "--hsaco", "optimized.hsaco", cwd=tmp_path, code=1)
    types = {region["dtype"]: region["dtype_source"] for region in judged["regions"]}
    assert types == {"bf16": "Triton's signature", "e4m3fnuz": "Triton's signature"}


def test_the_programs_cache_is_not_touched(extract: Extract, tmp_path: Path) -> None:  # S7
    extract("softmax_kernel", "kernels.py", "softmax")
    cache = tmp_path / "cache"
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    assert before
    make("recompile", tmp_path / "out")
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before


def test_what_does_not_compile_is_told(extract: Extract, tmp_path: Path) -> None:
    extract("softmax_kernel", "kernels.py", "softmax")
    edit(tmp_path / "out", ("tl.sum(top, axis=0)", "tl.summ(top, axis=0)"))
    said = make("recompile", tmp_path / "out", code=1)
    lines = (tmp_path / "out" / "kernel_variant.py").read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if "tl.summ" in text)
    assert f"kernel_variant.py:{line}:" in said
    assert "has no attribute 'summ'" in said
    assert "kernel_variant.py does not compile." in said
    assert "Traceback" not in said
    assert not (tmp_path / "out" / "optimized.hsaco").exists()
