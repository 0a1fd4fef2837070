"""What a variant must fit: symbol, arch, arguments, LDS, workgroup (R3). Never another kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from make_capture import Memory, Spec

from kerncap.core.capture.records import Capture
from kerncap.core.code.reading import read_code_object
from kerncap.core.errors import DamagedCaptureError, InconclusiveError, KerncapError, UsageError
from kerncap.core.judge.dtypes import type_map
from kerncap.core.judge.validate import Validator
from kerncap.core.replay.launch import captured_kernel
from kerncap.core.replay.module_variables import check_variables
from kerncap.core.replay.variant_launch import variant_launch
from kernels import arguments, compile_source, spec

A = 0x7E1000000000
Make = Callable[[Spec], Capture]
SCALE = """extern "C" __global__ void k(const float* a, float* c, float f) {
  int i = blockIdx.x * 64 + threadIdx.x; c[i] = a[i] * f; }"""


AT_MOST_32 = "__attribute__((amdgpu_flat_work_group_size(1, 32)))"


def scale_spec(source: str = SCALE, **more: object) -> Spec:
    a = np.arange(256, dtype=np.float32)
    memory = [Memory(A, a), Memory(A + 0x1000, np.zeros(256, np.float32), a * 3)]
    return spec(compile_source(source), "k", memory, arguments(A, A + 0x1000, np.float32(3)), **more)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (SCALE.replace("void k(", "void other("), r"has no kernel k; it has other"),
        (SCALE.replace("float f)", "float f, int n)"), "one argument more: int n at offset 20"),
        (SCALE.replace(", float f)", ")").replace("* f", "* 3"), "one argument less: .*at offset 16"),
        (SCALE.replace("float* c, float f", "float f, float* c"), r"2 is float f .*captured was .*8"),
        (SCALE.replace("void k(", f"void {AT_MOST_32} k("), "at most 32"),
    ],
)  # fmt: skip
def test_a_variant_that_does_not_fit_is_refused(make: Make, source: str, message: str) -> None:
    capture = make(scale_spec())
    with pytest.raises(UsageError, match=message) as error:
        variant_launch(capture, compile_source(source, flags=("-O2", "-g")))
    assert error.value.exit_code == 2
    assert not set("[]{}") & set(error.value.message)


def test_another_arch_is_refused(make: Make) -> None:
    with pytest.raises(UsageError, match=r"code for gfx90a; the capture is of gfx942"):
        variant_launch(make(scale_spec()), compile_source(SCALE, arch="gfx90a"))


def test_more_lds_than_there_is_is_refused(make: Make) -> None:
    capture = make(scale_spec(group_segment=40_000))  # dynamic LDS: the kernel itself has none
    source = SCALE.replace(
        "int i =", "__shared__ float t[8192]; t[threadIdx.x] = f; __syncthreads(); f = t[63]; int i ="
    )
    with pytest.raises(UsageError, match=r"needs 72768 bytes of LDS.*has 65536"):
        variant_launch(capture, compile_source(source))
    fits = make(scale_spec(group_segment=1000))
    assert variant_launch(fits, compile_source(source)).group_bytes == 33768


@pytest.mark.parametrize(
    ("swaps", "message"),
    [
        ({b"\xa5.size\x04": b"\xa5.size\xfc"}, r"damaged: argument 3 .* has -4 bytes at offset 16"),
        ({b"\xa7.offset\x08": b"\xa7.offset\xff"}, r"damaged: argument 2 .* has 8 bytes at offset -1"),
        (
            {b"_segment_size\xcd\x01\x18": b"_segment_size\xcd\x00\x14", b"\xa5.size\x02": b"\xa5.size\x01"},
            r"damaged: its hidden_block_count_x is 4 bytes at offset 24 of 20",
        ),
        ({b"\xa5.size\x02": b"\xa5.size\x00"}, r"damaged: hidden_group_size_x is 64, and has 0 bytes"),
    ],
)
def test_arguments_that_do_not_fit_into_their_own_bytes_are_damaged_metadata(
    make: Make, tmp_path: Path, swaps: dict[bytes, bytes], message: str
) -> None:
    hidden = SCALE.replace("int i =", "f *= ((const short*)__builtin_amdgcn_implicitarg_ptr())[6]; int i =")
    content = compile_source(hidden).read_bytes()
    for old, new in swaps.items():
        assert old in content
        content = content.replace(old, new)
    variant = tmp_path / "variant.hsaco"
    variant.write_bytes(content)
    with pytest.raises(KerncapError, match=message) as error:
        variant_launch(make(scale_spec()), variant)
    assert error.value.exit_code == 2


@pytest.mark.parametrize("begin", [0, 64, 1000, 3000])
def test_a_captured_code_object_with_another_byte_is_a_damaged_capture(make: Make, begin: int) -> None:
    """Before anything of it is read: types, arguments, variables."""
    capture = make(scale_spec())
    path = capture.code_path()
    content = bytearray(path.read_bytes())
    content[begin] ^= 0x10
    path.unlink()
    path.write_bytes(content)
    variant = compile_source(SCALE)
    for read in (
        lambda: type_map(capture),
        lambda: captured_kernel(capture),
        lambda: check_variables(capture, read_code_object(variant), variant),
        lambda: variant_launch(capture, variant),
        lambda: Validator(capture),
    ):
        with pytest.raises(DamagedCaptureError, match="other bytes than those that are there"):
            read()


def test_what_is_no_code_object_is_refused(make: Make, tmp_path: Path) -> None:
    capture = make(scale_spec())
    with pytest.raises(UsageError, match="no such file"):
        variant_launch(capture, tmp_path / "none.hsaco")
    text = tmp_path / "text.hsaco"
    text.write_text("not ELF")
    with pytest.raises(UsageError, match=r"text\.hsaco"):
        variant_launch(capture, text)
    cut = tmp_path / "cut.hsaco"
    cut.write_bytes(compile_source(SCALE).read_bytes()[:1000])
    with pytest.raises(UsageError, match=r"cut\.hsaco"):
        variant_launch(capture, cut)


def test_hidden_arguments_are_made_where_the_captured_kernel_had_none(make: Make) -> None:
    assert b"hidden" not in compile_source(SCALE).read_bytes()
    plain = scale_spec()
    plain.kernargs = plain.kernargs[:20]  # as the runtime passes them: only what the kernel takes
    index = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (gridDim.x != 4 || blockDim.x != 64) return;"
    source = SCALE.replace("int i = blockIdx.x * 64 + threadIdx.x;", index)
    with Validator(make(plain)) as validator:
        assert validator.validate().verdict == "IDENTICAL"
        assert validator.validate(compile_source(source)).verdict == "IDENTICAL"


def test_a_kernel_that_needs_its_program_is_refused(make: Make) -> None:  # C16
    with (
        Validator(make(scale_spec(flags=1))) as validator,
        pytest.raises(InconclusiveError, match="hostcall"),
    ):
        validator.validate()


def test_an_element_of_a_table_of_pointers(make: Make) -> None:
    source = """extern "C" __global__ void k(float** table, int n) {
      int i = blockIdx.x * 64 + threadIdx.x; table[i & 1][i] = i; }"""
    rows = [np.zeros(256, np.float32) for _ in range(2)]
    after = [np.where(np.arange(256) % 2 == j, np.arange(256), 0).astype(np.float32) for j in range(2)]
    memory = [
        Memory(A, np.array([A + 0x1000, A + 0x2000], np.uint64)),
        Memory(A + 0x1000, rows[0], after[0]),
        Memory(A + 0x2000, rows[1], after[1]),
    ]
    with Validator(make(spec(compile_source(source), "k", memory, arguments(A, np.int32(2))))) as validator:
        assert validator.validate(mode="strict").verdict == "IDENTICAL"
        late = compile_source(source.replace("= i;", "= i + (i == 200);"))
        result = validator.validate(late)
        assert result.verdict == "FAIL"
        assert result.regions[0]["address"] == f"0x{A + 0x1000:x}"


VARIABLES = """__constant__ float factor[4]; __device__ int calls; static __device__ int seen;
    extern "C" __global__ void k(float* out) {
      if (threadIdx.x == 0) { calls += 1; seen += 1; }
      out[threadIdx.x] = factor[threadIdx.x & 3] + seen; }"""


def with_variables(make: Make, held: dict[str, np.ndarray]) -> Capture:
    """A capture of VARIABLES; `held` are the values of its variables before the dispatch, where not zero."""
    from kerncap.core.code.reading import read_code_object

    hsaco, base = compile_source(VARIABLES), 0x7D0000000000
    variables = read_code_object(hsaco).variables
    assert {v.name for v in variables if v.local} <= {v.name for v in variables} - {"factor", "calls"}
    memory = [Memory(A, np.zeros(64, np.float32), np.ones(64, np.float32))]
    for v in variables:
        value = next((x for name, x in held.items() if name in v.name), np.zeros(v.size, np.uint8))
        memory.append(Memory(base + v.address, value, None, 8, code_object=1))
    named = [(v.name, base + v.address, v.size) for v in variables if not v.local]
    return make(
        spec(hsaco, "k", memory, arguments(A), items=64, load_base=base, load_delta=base, variables=named)
    )


FACTORS = {"factor": np.arange(4, dtype=np.float32)}


@pytest.mark.parametrize(
    ("held", "old", "new", "words"),
    [
        (FACTORS, "factor[4]", "factor[8]", "factor has 32 bytes, 16 were captured"),
        ({"calls": np.array([7], np.int32)}, "int calls", "long calls", "calls has 8 bytes, 4 were captured"),
        ({"seen": np.array([7], np.int32)}, "+ seen", "+ 1 + seen", "has no symbol that the loader knows"),
    ],
)
def test_a_variable_whose_value_cannot_be_put_back_is_refused(
    make: Make, held: dict[str, np.ndarray], old: str, new: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words) as error:
        variant_launch(with_variables(make, held), compile_source(VARIABLES.replace(old, new)))
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("int calls", "long calls", ["calls has 8 bytes in the variant, 4 were captured"]),
        ("calls", "times", ["no module variable calls (4 bytes)", "variable times (4 bytes) is not in"]),
        ("__device__ int calls", "__device__ float more; __device__ int calls", ["variable more (4 bytes)"]),
        ("+ seen", "+ 1 + seen", []),
    ],
)
def test_variables_that_differ_are_named(make: Make, old: str, new: str, words: list[str]) -> None:
    launch = variant_launch(with_variables(make, FACTORS), compile_source(VARIABLES.replace(old, new)))
    assert len(launch.warnings) == len(words)
    for warning, wanted in zip(launch.warnings, words, strict=True):
        assert wanted in warning
