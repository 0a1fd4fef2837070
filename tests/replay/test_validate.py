"""Verdicts, with real kernels on the simulated device: what must pass, and above all what must not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from make_capture import CODE_SEGMENT, Memory, Spec

from kerncap.core.errors import UsageError
from kerncap.core.judge.compare import Tolerance
from kerncap.core.judge.validate import Validator
from kerncap.core.judge.wording import element_text
from kernels import arguments, compile_source, spec

A = 0x7E1000000000
B, C, D = A + 0x10000, A + 0x20000, A + 0x30000
N = 250
MakeValidator = Callable[..., Validator]

VADD = """
extern "C" __global__ void k(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = %s;
}"""


def vadd(body: str = "a[i] + b[i]") -> str:
    return VADD % body


def inputs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    return rng.random(N, np.float32), rng.random(N, np.float32)


def vadd_spec(*, before: np.ndarray | None = None, demangled: str = "") -> Spec:
    a, b = inputs()
    before = np.full(N, -1, np.float32) if before is None else before
    memory = [Memory(A, a), Memory(B, b), Memory(C, before, a + b)]
    hsaco = compile_source(vadd())
    return spec(hsaco, "k", memory, arguments(A, B, C, np.int32(N)), demangled=demangled)


def test_the_captured_kernel_gives_the_applications_result(validator: MakeValidator) -> None:
    v = validator(vadd_spec())
    for mode in ("default", "strict"):
        result = v.validate(mode=mode)
        assert (result.verdict, result.reason) == ("IDENTICAL", "")
        assert result.compared_bytes > 0
        assert result.exit_code == 0
    assert result.compared_bytes >= 3 * N * 4  # strict: every captured byte
    assert result.written_bytes >= N * 4


def test_a_right_variant_passes(validator: MakeValidator) -> None:
    v = validator(vadd_spec())
    result = v.validate(compile_source(vadd("b[i] + a[i]")))
    assert result.verdict == "IDENTICAL"


def test_a_wrong_variant_fails_with_its_first_element(validator: MakeValidator) -> None:
    v = validator(vadd_spec(), dtypes={3: "f32"})
    result = v.validate(compile_source(vadd("i == 77 ? a[i] : a[i] + b[i]")))
    assert result.verdict == "FAIL"
    (region,) = [r for r in result.regions if r["mismatches"]]
    a, b = inputs()
    assert region["first"]["index"] == 77
    assert region["first"]["actual"] == pytest.approx(float(a[77]))
    assert region["first"]["expected"] == pytest.approx(float(a[77] + b[77]))
    assert region["mismatches"] == 1
    assert region["max_abs"] == pytest.approx(float(b[77]), rel=1e-6)
    assert "element 77" in result.reason
    assert result.exit_code == 1


def test_the_first_element_is_named_by_what_it_counts_from(validator: MakeValidator) -> None:
    source = """extern "C" __global__ void k(const float* src, float* dst) {
      const int i = threadIdx.x; dst[i] = src[i] + %s; }"""
    x, skip = np.arange(64, dtype=np.float32), 100  # dst does not begin where its region does
    before = np.zeros(256, np.float32)
    after = before.copy()
    after[skip : skip + 64] = x + 1
    words = arguments(A, B + 4 * skip)
    memory = [Memory(A, x), Memory(B, before, after)]
    options = {"items": 64, "demangled": "k(float const*, float*)"}
    wrong = source % "(i == 7 ? 2 : 1)"
    named = compile_source(source % "1", flags=("-O2", "-g"))
    v = validator(spec(named, "k", memory, words, **options))
    result = v.validate(compile_source(wrong))
    place = f"0x{B + 4 * (skip + 7):x}, byte {4 * (skip + 7)} of region 2, 1024 bytes"
    assert f"1 element differs; the first: element 7 of dst ({place}) is 9.0, should be 8.0" in result.reason
    first = next(r["first"] for r in result.regions if r["mismatches"])
    assert (first["argument"], first["base"]) == ("dst", f"0x{B + 4 * skip:x}")
    assert element_text(first).startswith("dst[7] at ")
    v = validator(spec(compile_source(source % "1"), "k", memory, words, **options))  # names nothing
    result = v.validate(compile_source(wrong))
    assert f"element 7 of what begins at byte {4 * skip} of region 2 (0x{B:x}, 1024 bytes)" in result.reason


def test_in_place_kernels_replay_from_the_state_before(validator: MakeValidator) -> None:  # C1
    source = """extern "C" __global__ void k(float* x) {
      int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] = x[i] * 3 + 1; }"""
    x = np.arange(256, dtype=np.float32)
    v = validator(spec(compile_source(source), "k", [Memory(A, x, x * 3 + 1)], arguments(A)))
    for _ in range(3):
        assert v.validate(mode="strict").verdict == "IDENTICAL"
    v.replayer.run(v.baseline().variant, 5)  # timed runs do not spoil what comes after
    assert v.validate(compile_source(source.replace("* 3 + 1", "* 2 + x[i] + 1"))).verdict == "IDENTICAL"
    assert v.validate(compile_source(source.replace("* 3 + 1", "* 3 + 2"))).verdict == "FAIL"


EMPTY = 'extern "C" __global__ void k(const float* a, const float* b, float* c, int n) {}'


def test_an_emptied_kernel_fails(validator: MakeValidator) -> None:  # C2
    assert validator(vadd_spec()).validate(compile_source(EMPTY)).verdict == "FAIL"


def test_an_emptied_kernel_fails_where_the_result_was_there_already(validator: MakeValidator) -> None:
    a, b = inputs()
    v = validator(vadd_spec(before=a + b))
    assert v.validate(compile_source(vadd("b[i] + a[i]"))).verdict == "IDENTICAL"
    result = v.validate(compile_source(EMPTY))
    assert result.verdict == "FAIL", result
    assert v.validate(compile_source(vadd("a[i]"))).verdict == "FAIL"


def test_leaving_out_stores_that_would_change_nothing(validator: MakeValidator) -> None:
    a, b = inputs()
    before = a + b
    before[: N // 2] = -1  # half of the result was there already
    v = validator(vadd_spec(before=before))
    half = vadd().replace("if (i < n)", "if (i < n / 2)")
    assert v.validate(compile_source(half)).verdict == "FAIL"
    # Looking before storing is another matter: the result is the same from any state.
    careful = vadd().replace("c[i] =", "if (c[i] != a[i] + b[i]) c[i] =")
    assert v.validate(compile_source(careful)).verdict == "IDENTICAL"


def test_a_kernel_that_writes_nothing_proves_nothing(validator: MakeValidator) -> None:
    x = np.arange(64, dtype=np.int32)
    source = 'extern "C" __global__ void k(const int* x, int* y, int n) { if (n < 0) y[0] = x[0]; }'
    memory = [Memory(A, x), Memory(B, x.copy())]
    v = validator(spec(compile_source(source), "k", memory, arguments(A, B, np.int32(1))))
    assert v.validate().verdict == "INCONCLUSIVE"
    assert v.validate(compile_source(source.replace("n < 0", "n < -1"))).verdict == "INCONCLUSIVE"


@pytest.mark.parametrize("place", ["in the gap", "in another buffer", "the same value in another buffer"])
def test_a_store_outside_of_the_written_set_fails(validator: MakeValidator, place: str) -> None:  # R4
    v = validator(vadd_spec())
    store = {
        "in the gap": f"if (i == 0) c[{N}] = 1;",
        "in another buffer": "if (i == 3) ((float*)a)[3] = 9;",
        "the same value in another buffer": "if (i == 3) ((volatile float*)a)[3] = a[3];",
    }[place]
    source = vadd().replace("if (i < n)", store + "if (i < n)")
    result = v.validate(compile_source(source))
    if place.startswith("the same") and not v.replayer.tracks_writes:
        assert result.verdict == "IDENTICAL"  # hardware cannot tell
        return
    assert result.verdict == "FAIL"
    if v.replayer.tracks_writes:
        assert "bytes that the captured kernel does not" in result.reason
        assert "region" in result.reason
    assert v.validate(compile_source(vadd())).verdict == "IDENTICAL"  # nothing of it is left


def test_a_fault_is_a_verdict_and_the_tool_lives_on(validator: MakeValidator) -> None:  # R4
    v = validator(vadd_spec())
    wild = vadd().replace("c[i] =", "c[i + (i == 9) * 0x4000000ll] =")
    result = v.validate(compile_source(wild))
    assert result.verdict == "FAIL"
    address = C + 4 * (9 + 0x4000000)
    assert result.fault_address is not None
    assert result.fault_address in (address, address & ~0xFFF)
    assert "region 3" in result.reason
    assert v.validate(compile_source(vadd())).verdict == "IDENTICAL"
    assert v.replayer.generation == 2


def test_a_variant_that_never_ends_fails(validator: MakeValidator) -> None:  # R5
    v = validator(vadd_spec(), limit_s=1.5)
    v.baseline()
    endless = vadd().replace("if (i < n)", "if (i == 5) while (((volatile float*)a)[5] >= 0) {} if (i < n)")
    result = v.validate(compile_source(endless))
    assert result.verdict == "FAIL"
    assert "timeout" in result.reason
    assert v.validate(compile_source(vadd())).verdict == "IDENTICAL"


def test_types_come_from_the_signature(validator: MakeValidator) -> None:
    v = validator(vadd_spec(demangled="k(float const*, float const*, float*, int)"))
    close = compile_source(vadd("(a[i] + b[i]) * 1.0000002f"))
    result = v.validate(close)
    assert result.verdict == "FAIL"
    assert result.regions[0]["dtype"] == "f32"
    assert 0 < result.regions[0]["max_ulp"] <= 4
    assert v.validate(close, tolerance=Tolerance(ulp=4)).verdict == "WITHIN_TOLERANCE"
    allowed = v.validate(close, tolerance=Tolerance(rtol=1e-6, ulp=1))
    assert allowed.verdict == "WITHIN_TOLERANCE"
    assert allowed.reason.endswith("within the tolerance (rtol 1e-06, ulp 1)")
    assert v.validate(close, tolerance=Tolerance(rtol=1e-9)).verdict == "FAIL"


def test_a_tolerance_does_not_apply_to_memory_of_unknown_type(validator: MakeValidator) -> None:
    v = validator(vadd_spec())
    close = compile_source(vadd("(a[i] + b[i]) * 1.0000002f"))
    assert v.validate(close, tolerance=Tolerance(rtol=1e-3)).verdict == "FAIL"


def test_nans_and_signed_zeros(validator: MakeValidator) -> None:  # R7
    source = """extern "C" __global__ void k(const unsigned* a, unsigned* c) {
      int i = blockIdx.x * blockDim.x + threadIdx.x; c[i] = %s; }"""
    bits = np.full(256, 0x3F800000, np.uint32)
    bits[[3, 4, 5]] = 0x7FC00000, 0x80000000, 0x7F800000
    memory = [Memory(A, bits), Memory(B, np.zeros(256, np.uint32), bits)]
    v = validator(spec(compile_source(source % "a[i]"), "k", memory, arguments(A, B)), dtypes={2: "f32"})

    def verdict(body: str, **tolerance: float) -> str:
        options = Tolerance(**tolerance)  # type: ignore[arg-type]
        return v.validate(compile_source(source % body), tolerance=options).verdict

    assert verdict("a[i]") == "IDENTICAL"
    assert verdict("i == 3 ? 0x7fc00001u : a[i]") == "WITHIN_TOLERANCE"  # NaN in both, other bits
    assert verdict("i == 4 ? 0u : a[i]") == "WITHIN_TOLERANCE"  # -0 and +0
    assert verdict("i == 4 ? 0u : a[i]", bitwise=True) == "FAIL"
    assert verdict("i == 7 ? 0x7fc00000u : a[i]", rtol=1.0, atol=1e30) == "FAIL"  # a new NaN
    assert verdict("i == 3 ? 0x3f800000u : a[i]", rtol=1.0, atol=1e30) == "FAIL"  # a NaN less
    assert verdict("i == 5 ? 0xff800000u : a[i]", rtol=1.0, atol=1e30) == "FAIL"  # Inf of the other sign
    assert verdict("i == 5 ? 0x7f7fffffu : a[i]", rtol=1.0, atol=1e38) == "FAIL"  # Inf became finite


COUNTER = """
__device__ %s int counter[4] = {1, 2, 3, 4};
extern "C" __global__ void k(int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = counter[i & 3];
  if (i < 4) counter[i] = %s;
}"""


def counter_spec() -> Spec:
    from kerncap.core.code.reading import read_code_object

    hsaco = compile_source(COUNTER % ("", "7"))
    (variable,) = [x for x in read_code_object(hsaco).variables if x.name == "counter"]
    base = 0x7D0000000000
    before = np.array([11, 12, 13, 14], np.int32)  # not what the file says: the program had changed it
    after = np.full(4, 7, np.int32)
    address = base + variable.address
    memory = [
        Memory(A, np.zeros(64, np.int32), np.tile(before, 16)),
        Memory(address, before, after, CODE_SEGMENT, code_object=1),
    ]
    return spec(
        hsaco, "k", memory, arguments(A), items=64, load_base=base, load_delta=base,
        variables=[("counter", address, 16)],
    )  # fmt: skip


def test_module_variables_are_restored_and_compared(validator: MakeValidator) -> None:  # R10
    v = validator(counter_spec())
    assert v.validate().verdict == "IDENTICAL"
    assert v.validate(mode="strict").verdict == "IDENTICAL"
    moved = '__device__ int unrelated[300]; extern "C" __global__ void z() { unrelated[5] = 1; }'
    assert v.validate(compile_source(moved + COUNTER % ("", "(7)"))).verdict == "IDENTICAL"
    assert v.validate(compile_source(COUNTER % ("", "8"))).verdict == "FAIL"
    gone = COUNTER.replace("if (i < 4) counter[i] = %s;", "") % ""
    result = v.validate(compile_source(gone))
    assert result.verdict in ("FAIL", "INCONCLUSIVE")
    assert not result.passed


def test_smoke_runs_and_does_not_claim_more(validator: MakeValidator) -> None:
    v = validator(vadd_spec())
    result = v.validate(compile_source(vadd("a[i]")), mode="smoke")
    assert (result.verdict, result.exit_code, result.compared_bytes) == ("RAN", 0, 0)
    assert not result.passed
    wild = compile_source(vadd().replace("c[i] =", "c[i + 0x40000000ll] ="))
    assert v.validate(wild, mode="smoke").verdict == "FAIL"


def test_a_capture_that_does_not_replay_says_so(validator: MakeValidator) -> None:
    wrong = vadd_spec()
    assert wrong.memory[2].after is not None
    wrong.memory[2].after[40] += 1  # as if the kernel read something that was not captured
    v = validator(wrong, dtypes={3: "f32"})
    result = v.validate()
    assert result.verdict == "FAIL"
    assert "own replay differs" in result.reason
    assert result.regions[0]["first"]["index"] == 40
    assert v.validate(compile_source(vadd("b[i] + a[i]"))).verdict == "INCONCLUSIVE"


@pytest.mark.parametrize(
    "wrong",
    [
        "((volatile float*)c)[i] + 0.0f",  # what was there
        "((volatile float*)c)[i] > -9e9f ? ((volatile float*)c)[i] : a[i]",
    ],
)
def test_storing_what_was_there_fails_where_that_was_right(validator: MakeValidator, wrong: str) -> None:
    a, b = inputs()
    v = validator(vadd_spec(before=a + b))
    for _ in range(2):  # the captured kernel's run is kept
        assert v.validate(compile_source(vadd("b[i] + a[i]"))).verdict == "IDENTICAL"
        assert v.validate(compile_source(vadd(wrong))).verdict == "FAIL"


def test_adding_to_what_was_there_fails_where_that_was_zero(validator: MakeValidator) -> None:
    v = validator(vadd_spec(before=np.zeros(N, np.float32)))
    assert v.validate(compile_source(vadd("b[i] + a[i]"))).verdict == "IDENTICAL"
    result = v.validate(compile_source(vadd("c[i] + a[i] + b[i]")))
    assert result.verdict == "FAIL"
    assert "depends on what was there before" in result.reason


@pytest.mark.parametrize("names", ["", "k(float const*, float const*, float*, int)"])
def test_a_kernel_that_adds_is_held_against_itself_from_another_state(
    validator: MakeValidator, names: str
) -> None:
    a, b = inputs()
    source = vadd("c[i] + a[i] + b[i]")
    memory = [Memory(A, a), Memory(B, b), Memory(C, np.zeros(N, np.float32), a + b)]
    v = validator(spec(compile_source(source), "k", memory, arguments(A, B, C, np.int32(N)), demangled=names))
    for _ in range(2):
        right = v.validate(compile_source(vadd("a[i] + b[i] + 1.0f * c[i]")))
        assert right.verdict == "IDENTICAL"  # it rounds otherwise where other numbers are there
        assert [w for w in right.warnings if "--dtype" in w] == right.warnings
        assert bool(right.warnings) == (not names)
        result = v.validate(compile_source(vadd("a[i] + b[i]")))  # right only where zeros were there
        assert result.verdict == "FAIL"
        assert "depends on what was there before" in result.reason


@pytest.mark.parametrize("how", ["faults", "does not end"])
def test_a_kernel_that_needs_what_it_overwrites_warns(
    validator: MakeValidator, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kerncap.core.replay.replayer._LEAST_LIMIT_S", 0.5)
    source = """extern "C" __global__ void k(long* x, int* y) {
      int i = threadIdx.x; %s y[i] = (int)x[i] + 7; x[i] = i + 1; }"""
    need = {
        "faults": "y[i] = ((volatile int*)y)[x[i] * 64];",
        "does not end": "while (((volatile long*)x)[i] != i) {}",
    }[how]
    x = np.arange(64, dtype=np.int64)
    if how == "faults":
        x[:] = 0
    memory = [Memory(A, x, np.arange(64) + 1), Memory(B, np.zeros(64, np.int32), (x + 7).astype(np.int32))]
    v = validator(spec(compile_source(source % need), "k", memory, arguments(A, B), items=64))
    if not v.replayer.tracks_writes:
        return  # whether it stores to the bytes that did not change cannot be told: INCONCLUSIVE
    for _ in range(2):
        result = v.validate(compile_source(source.replace("+ 7", "+ 6 + 1") % need))
        assert result.verdict == "IDENTICAL", result
        (warning,) = result.warnings
        assert f"the captured kernel {how}" in warning
        assert "not proven" in warning


def test_a_declared_type_that_contradicts_another_is_told(validator: MakeValidator) -> None:
    half = compile_source(vadd("i & 1 ? a[i] + b[i] : -12345"))  # even floats are the low half of doubles
    v = validator(vadd_spec(demangled="k(float const*, float const*, float*, int)"), dtypes={3: "f64"})
    with pytest.raises(UsageError, match="is declared f64, and is f32 by the mangled name"):
        v.validate(half, tolerance=Tolerance(rtol=1e-6))
    result = v.validate(half)
    assert result.verdict == "FAIL"
    assert any("declared f64, and is f32" in warning for warning in result.warnings)
    agreed = validator(vadd_spec(demangled="k(float const*, float const*, float*, int)"), dtypes={3: "f32"})
    assert agreed.validate(compile_source(vadd()), tolerance=Tolerance(rtol=1e-6)).warnings == []


def test_a_fault_for_want_of_memory_names_the_option_that_saves_it(validator: MakeValidator) -> None:
    source = """extern "C" __global__ void k(unsigned long p, float* c) {
      c[threadIdx.x] = ((const float*)(p ^ 0x5555555555555555ul))[threadIdx.x] * 2; }"""
    hidden = np.uint64((A + 0x10000000) ^ 0x5555555555555555)
    memory = [Memory(C, np.zeros(64, np.float32), np.ones(64, np.float32))]
    v = validator(spec(compile_source(source), "k", memory, arguments(hidden, C), items=64))
    result = v.validate()
    assert result.verdict == "FAIL"
    assert "`extract --memory all`" in result.reason
    assert v.validate(compile_source(source)).verdict == "INCONCLUSIVE"
