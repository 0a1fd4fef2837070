"""Kernels that do not repeat themselves, on the simulated device (R6)."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from make_capture import Memory, Spec

from kerncap.cli.entry import run
from kerncap.core.capture.records import Capture
from kerncap.core.extract.extract import extract
from kerncap.core.judge.compare import EXACT, Tolerance
from kerncap.core.judge.validate import Validator
from kerncap.core.judge.verdict import Baseline
from kerncap.core.replay.launch import captured_launch
from kerncap.core.replay.replayer import Replayer
from kernels import arguments, compile_source, spec
from support.build import Program, compile_device

A = 0x7E1000000000
B, C = A + 0x1000000, A + 0x2000000
Make = Callable[[Spec], Capture]
MakeValidator = Callable[..., Validator]


def as_the_application(make: Make, captured: Spec, count: int) -> np.ndarray:
    """What one run of the captured kernel leaves in the `count` floats at B."""
    first = make(captured)
    with Replayer(first) as replayer:
        variant = replayer.load(captured_launch(first))
        replayer.request("schedule", 77)
        replayer.run(variant, track=True)
        folder = first.path.parent / "dump"
        folder.mkdir()
        replayer.dump(folder)
        found = np.fromfile(folder / f"{B:x}.bin", np.float32)[:count]
        shutil.rmtree(folder)
    return found


def numbers(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.random(count) * 10.0 ** rng.integers(-3, 4, count)).astype(np.float32)


SUMS = """extern "C" __global__ void k(const float* a, float* sum, float* twice) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; %s; %s; }"""
ADD, TWICE = "atomicAdd(&sum[i & 7], a[i])", "twice[i] = a[i] * 2"


def sums_spec(sums: np.ndarray, n: int = 16384, source: str = SUMS % (ADD, TWICE)) -> Spec:
    a = numbers(n)
    memory = [
        Memory(A, a),
        Memory(B, np.zeros(8, np.float32), sums),
        Memory(C, np.zeros(n, np.float32), a * 2 if TWICE in source else None),
    ]
    return spec(compile_source(source), "k", memory, arguments(A, B, C), items=n)


def test_sums_in_random_order(make: Make, validator: MakeValidator) -> None:
    n = 16384
    sums = as_the_application(make, sums_spec(np.full(8, 1, np.float32)), 8)
    v = validator(sums_spec(sums), dtypes={2: "f32", 3: "f32"})
    own = v.validate(mode="strict")
    assert own.verdict == "NONDETERMINISTIC_OK", own
    assert 0 < own.masked_bytes <= 32
    assert own.unchecked_bytes == 0
    assert own.written_bytes == 32 + 4 * n
    assert own.to_json()["masked_share"] == own.masked_bytes / own.written_bytes
    assert f"{own.masked_bytes} of {own.written_bytes} written bytes" in own.reason
    assert own.variation
    assert v.validate(compile_source(SUMS % (ADD, "twice[i] = a[i] * 2.f"))).passed
    result = v.validate(compile_source(SUMS % ("atomicAdd(&sum[i & 7], a[i] * 1.01f)", TWICE)))
    assert result.verdict == "FAIL", result
    assert result.regions[0]["id"] == 2
    assert result.regions[0]["max_rel"] == pytest.approx(0.01, rel=0.01)
    assert "own replays vary from" in result.reason
    assert v.validate(compile_source(SUMS % (ADD, "twice[i] = a[i] * 3"))).verdict == "FAIL"
    slightly = compile_source(SUMS % ("atomicAdd(&sum[i & 7], a[i] * 1.0001f)", TWICE))
    assert v.validate(slightly).verdict == "FAIL"
    assert v.validate(slightly, tolerance=Tolerance(rtol=1e-3)).passed


@pytest.mark.parametrize("mode", ["default", "strict"])
def test_a_kernel_all_of_whose_bytes_vary(make: Make, validator: MakeValidator, mode: str) -> None:
    """Floats are held against the range of the replays; every kind of wrong result is found."""
    source = SUMS % (ADD, "")
    sums = as_the_application(make, sums_spec(np.full(8, 1, np.float32), source=source), 8)
    v = validator(sums_spec(sums, source=source), dtypes={2: "f32"})
    own = v.validate(mode=mode)
    assert (own.verdict, own.baseline, own.masked_bytes) == ("NONDETERMINISTIC_OK", own.verdict, 32)
    assert own.to_json()["masked_share"] == 1.0
    assert "(100 %)" in own.reason
    assert own.baseline_runs >= 6
    other_order = "int j = 16383 - i; atomicAdd(&sum[j & 7], a[j])"
    assert v.validate(compile_source(SUMS % (other_order, "")), mode).verdict == "NONDETERMINISTIC_OK"
    largest = int(numbers(16384).argmax())  # a small one is within the rounding of the others
    wrong = {
        "twice as much": "atomicAdd(&sum[i & 7], 2 * a[i])",
        "emptied": "",
        "a term is missing": f"if (i != {largest}) atomicAdd(&sum[i & 7], a[i])",
        "half of them are": "if (i & 8) atomicAdd(&sum[i & 7], a[i])",
        "one sum is left out": "if ((i & 7) != 3) atomicAdd(&sum[i & 7], a[i])",
        "another place": "atomicAdd(&sum[(i + 1) & 7], a[i])",
        "negative": "atomicAdd(&sum[i & 7], -a[i])",
        "NaN": 'atomicAdd(&sum[i & 7], i == 5 ? __builtin_nanf("") : a[i])',
        "infinite": "atomicAdd(&sum[i & 7], i == 5 ? __builtin_inff() : a[i])",
        "constant": "sum[i & 7] = 0x1p20f",
    }
    for what, body in wrong.items():
        result = v.validate(compile_source(SUMS % (body, "")), mode)
        assert result.verdict == "FAIL", (what, result)


def test_a_reference_outside_of_the_range_does_not_hold(make: Make, validator: MakeValidator) -> None:
    source = SUMS % (ADD, "")
    sums = as_the_application(make, sums_spec(np.full(8, 1, np.float32), source=source), 8)
    sums[3] *= np.float32(1.001)  # no order of the sum gives this
    v = validator(sums_spec(sums, source=source), dtypes={2: "f32"})
    own = v.validate()
    assert own.verdict == "FAIL"
    assert "outside of their range" in own.reason
    assert "(a race, or a read of what is not in the capture or was never written)" in own.reason
    assert "element 3 of region 2" in own.reason
    assert v.validate(compile_source(SUMS % (ADD + "+0.f", ""))).verdict == "INCONCLUSIVE"
    assert v.validate(tolerance=Tolerance(rtol=1e-2)).passed


def test_what_varies_and_is_no_float_proves_nothing(make: Make) -> None:
    """Memory of unknown type, or integers: whoever came last. Also in strict mode, where more is compared."""
    source = """extern "C" __global__ void k(const float* a, unsigned* last, float* none) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if ((threadIdx.x & 63) == 0) { atomicExch(&last[0], i + 1u); atomicExch(&last[1], i + 7u); } }"""
    n = 16384
    memory = [
        Memory(A, numbers(n)),
        Memory(B, np.zeros(2, np.uint32), np.array([n, n + 6], np.uint32)),
        Memory(C, np.zeros(4, np.float32)),
    ]
    capture = make(spec(compile_source(source), "k", memory, arguments(A, B, C), items=n))
    for mode in ("default", "strict"):
        with Validator(capture, dtypes={2: "u32"}) as v:
            own = v.validate(mode=mode)
            assert own.verdict == "INCONCLUSIVE", own
            assert own.masked_bytes == own.unchecked_bytes > 0
            assert v.validate(compile_source(source + " "), mode).verdict == "INCONCLUSIVE"
            assert not v.validate(compile_source(source.replace("i + 1u", "5u")), mode).passed


SCATTER = """extern "C" __global__ void k(const float* a, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < 6; ++j) atomicAdd(&out[(i * 7 + j * j * 13) %% n], %s); }"""


def test_many_sums_of_few_terms(make: Make) -> None:
    """Most of them come out alike in most runs: a variant that adds in another order still passes."""
    n = 4096
    a = numbers(n)
    explicit = arguments(A, B, np.int32(n))

    def captured(sums: np.ndarray) -> Spec:
        memory = [Memory(A, a), Memory(B, np.zeros(n, np.float32), sums)]
        return spec(compile_source(SCATTER % "a[i] * (j + 1)"), "k", memory, explicit, items=n)

    sums = as_the_application(make, captured(np.ones(n, np.float32)), n)
    with Validator(make(captured(sums)), dtypes={2: "f32"}) as v:
        assert v.validate().verdict == "NONDETERMINISTIC_OK"
        assert v.validate(compile_source(SCATTER % "(j + 1) * a[i]")).verdict == "NONDETERMINISTIC_OK"
        wrong = compile_source(SCATTER % "a[i] * (j + 1 + (i == 1234 && j == 3))")
        assert v.validate(wrong).verdict == "FAIL"


def test_what_the_replays_did_not_show_is_no_fail(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of the same terms in another order come out in ways that a few replays do not show: they may be
    right.
    """
    monkeypatch.setattr("kerncap.core.judge.variation._MOST_EXTENDED", 0)
    n = 4096
    source = compile_source(SCATTER % "a[i] * (j + 1)")

    def captured(sums: np.ndarray) -> Spec:
        memory = [Memory(A, numbers(n)), Memory(B, np.zeros(n, np.float32), sums)]
        return spec(source, "k", memory, arguments(A, B, np.int32(n)), items=n)

    made = make(captured(as_the_application(make, captured(np.ones(n, np.float32)), n)))
    with Validator(made, dtypes={2: "f32"}) as v:
        # The application's own run is judged by the same replays: it may be such a run as well.
        monkeypatch.setattr(v._reference, "get", functools.partial(_accepted, v._reference.get))
        backwards = SCATTER.replace("int j = 0; j < 6; ++j", "int j = 5; j >= 0; --j")
        assert backwards != SCATTER
        result = v.validate(compile_source(backwards % "a[i] * (j + 1)"))
        assert (result.verdict, result.baseline) == ("INCONCLUSIVE", "NONDETERMINISTIC_OK"), result.reason
        assert "just outside of what 12 replays of the captured kernel showed" in result.reason
        wrong = compile_source(SCATTER % "a[i] * (j + 1 + (i == 1234 && j == 3))")
        assert v.validate(wrong).verdict == "FAIL"


def _accepted(get: Callable[..., Baseline], *arguments: object) -> Baseline:
    found = get(*arguments)
    found.verdict = "NONDETERMINISTIC_OK"
    return found


def test_many_sums_beside_bytes_that_had_their_value(make: Make, validator: MakeValidator) -> None:
    """Those are altered, and the sums that the kernel makes then have to be known as well as its others."""
    n = 4096
    a = numbers(n)
    source = SCATTER.replace("int n) {", "int n, float* same) {").replace("  for", "  same[i] = a[i]; for")

    def captured(sums: np.ndarray) -> Spec:
        before = np.where(np.arange(n) % 2, a, 0).astype(np.float32)
        memory = [Memory(A, a), Memory(B, np.zeros(n, np.float32), sums), Memory(C, before, a)]
        explicit = arguments(A, B, np.int32(n), np.int32(0), C)
        return spec(compile_source(source % "a[i] * (j + 1)"), "k", memory, explicit, items=n)

    sums = as_the_application(make, captured(np.ones(n, np.float32)), n)
    v = validator(captured(sums), dtypes={2: "f32", 3: "f32"})
    result = v.validate(compile_source(source % "(j + 1) * a[i]"))
    assert result.verdict == "NONDETERMINISTIC_OK", result.reason
    unstored = compile_source(
        source.replace("same[i] = a[i]", "if (i != 77) same[i] = a[i]") % "a[i] * (j + 1)"
    )
    assert v.validate(unstored).verdict == "FAIL"
    wrong = compile_source(source % "a[i] * (j + 1 + (i == 1234 && j == 3))")
    assert v.validate(wrong).verdict == "FAIL"


def test_a_program_with_float_atomics(
    build_program: Callable[[str], Program], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the program to the verdict, as a user goes."""
    program = build_program("float_atomics")
    result = extract(
        "sum_atomic",
        [str(program.executable)],
        device="sim:gfx942",
        output=tmp_path / "sum_atomic",
        stdout=subprocess.DEVNULL,
    )
    document = result.to_json()["baseline"]
    assert document["verdict"] == "NONDETERMINISTIC_OK", document
    assert document["masked_bytes"] == 16
    source = (program.source / "float_atomics.hip").read_text()

    def variant(name: str, old: str, new: str) -> Path:
        assert old in source
        (tmp_path / f"{name}.hip").write_text(source.replace(old, new))
        return compile_device(tmp_path / f"{name}.hip", tmp_path / f"{name}.hsaco")

    with Validator(tmp_path / "sum_atomic") as v:
        same = variant("same", "if (i < n)", "if (n > i)")
        for tolerance in (EXACT, Tolerance(rtol=1e-5)):
            assert v.validate(same, tolerance=tolerance).verdict == "NONDETERMINISTIC_OK"
        for name, old, new in (
            ("double", "x[i])", "2 * x[i])"),
            ("empty", "atomicAdd(&sums[i % 4], x[i])", ""),
            ("missing", "i < n", "i < n - 64"),
            ("shifted", "i % 4", "(i + 1) % 4"),
        ):
            found = v.validate(variant(name, old, new))
            assert found.verdict == "FAIL", (name, found)
    reproducer = str(tmp_path / "sum_atomic")
    assert run(["validate", reproducer]) == 0
    assert "masked 16 B (100 % of what is written)" in capsys.readouterr().out
    assert run(["validate", reproducer, "--dtype", "2=u32"]) == 3  # then nothing says what they should be
    assert run(["validate", reproducer, "--dtype", "2=f32", "--hsaco", str(tmp_path / "double.hsaco")]) == 1
    assert run(["validate", reproducer, "--dtype", "f32"]) == 2


RACY = """extern "C" __global__ void k(int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; out[64 + i] = i; %s; }"""
LAST = "((volatile int*)out)[i & 1] = i"  # whichever comes last


def test_a_store_that_varies_and_is_left_out_fails(make: Make) -> None:
    n = 4096
    before = np.full(64 + n, -1, np.int32)
    after = before.copy()
    after[64:] = np.arange(n)
    after[:2] = n - 2, n - 1
    captured = make(spec(compile_source(RACY % LAST), "k", [Memory(B, before, after)], arguments(B), items=n))
    with Validator(captured) as v:
        own = v.validate()
        assert own.verdict == "NONDETERMINISTIC_OK", own
        assert own.unchecked_bytes == 8
        for result in (own, v.validate(compile_source(RACY % LAST.replace("& 1", "% 2u")))):
            assert result.passed
            assert any("8 written bytes were not compared" in warning for warning in result.warnings)
        result = v.validate(compile_source(RACY % "if (i & 1) ((volatile int*)out)[1] = i"))
        assert result.verdict == "FAIL"
        assert f"does not store to 0x{B:x}" in result.reason


FIRST = """extern "C" __global__ void k(unsigned* count, float* out) {
  if (threadIdx.x == 0 && atomicAdd(count, 1u) == 0) out[0] = (SEEN >> (blockIdx.x / 8) & 1) ? 2 : 1; }"""


def first_comes(seen: int, expected: float) -> Spec:
    """A kernel whose result hangs on which of 256 workgroups comes first: 2 where that is one of `seen`."""
    code = compile_source(FIRST.replace("SEEN", f"0x{seen:x}u"))
    memory = [
        Memory(A, np.zeros(1, np.uint32), np.array([256], np.uint32)),
        Memory(B, np.zeros(1, np.float32), np.array([expected], np.float32)),
    ]
    return spec(code, "k", memory, arguments(A, B), items=256 * 64)


def test_a_race_that_the_first_replays_do_not_show_is_found(
    validator: MakeValidator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More orders are tried before a difference is said to be the same in all of them."""
    monkeypatch.setenv("KERNCAP_SIM_THREADS", "1")
    orders = [seed * 0x9E3779B97F4A7C15 % 2**64 % 256 // 8 for seed in range(38)]
    seen = 0
    for first in set(orders[8:]) - set(orders[:8]):
        seen |= 1 << first
    v = validator(first_comes(seen, 2.0), dtypes={2: "f32"})
    own = v.validate()
    assert own.verdict == "NONDETERMINISTIC_OK", own
    assert own.baseline_runs > 8
    assert "the same in every replay" not in own.reason
    right = validator(first_comes(0, 1.0), dtypes={2: "f32"}).validate()
    assert right.verdict == "IDENTICAL"
    assert right.baseline_runs <= 3  # of a right kernel no more replays are made


def test_a_difference_that_is_the_same_in_every_replay_may_be_a_race(validator: MakeValidator) -> None:
    own = validator(first_comes(0, 2.0), dtypes={2: "f32"}).validate()
    assert own.verdict == "FAIL"
    assert "the same in every replay: it reads what is not in the capture, or was never written" in own.reason
    assert "which part of its grid runs first (a race)" in own.reason
    assert own.baseline_runs > 12
