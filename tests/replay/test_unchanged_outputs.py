"""Regions that a kernel writes, and that had all of their values before: a variant has to write them, too,
also on a device that does not tell what is stored to.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from make_capture import Memory, Spec

from kerncap.core.judge.validate import Validator
from kernels import arguments, compile_source, spec

MakeValidator = Callable[..., Validator]
A, B, C, D = 0x7E1000000000, 0x7E2000000000, 0x7E3000000000, 0x7E4000000000
N = 4096
SOURCE = """extern "C" __global__ void k(const float* a, float* out, float* same, const unsigned* order) {
  int i = blockIdx.x * 64 + threadIdx.x;
  out[i] = a[order[i]] * 2;
  %s;
}"""


def captured(stored: str = "same[i] = a[i]", source: str = SOURCE, symbol: str = "k") -> Spec:
    a = np.random.default_rng(5).random(N).astype(np.float32)
    order = np.random.default_rng(6).permutation(N).astype(np.uint32)
    same = a if stored else np.zeros(N, np.float32)
    memory = [
        Memory(A, a),
        Memory(B, np.zeros(N, np.float32), a[order] * 2),
        Memory(C, same),
        Memory(D, order),
    ]
    return spec(compile_source(source % stored), symbol, memory, arguments(A, B, C, D), items=N)


@pytest.mark.parametrize(
    "stored", ["", "if (!(i & 1)) same[i] = a[i]", "if (i != 5) same[i] = a[i]", "same[i] += 0"]
)
def test_a_variant_that_leaves_them_alone_fails(validator: MakeValidator, stored: str) -> None:
    v = validator(captured(), dtypes={2: "f32", 3: "f32"})
    for mode in ("default", "strict"):
        assert v.validate(compile_source(SOURCE % "same[i] = a[i] + 0"), mode).verdict == "IDENTICAL"
        result = v.validate(compile_source(SOURCE % stored), mode)
        assert result.verdict == "FAIL", (mode, result.reason)
    if not v.replayer.tracks_writes:
        assert "keep what was there before" in result.reason


def test_what_cannot_be_told_is_a_warning(validator: MakeValidator) -> None:
    """Altered indices lead the captured kernel astray: whether it stores to them is not known."""
    v = validator(captured())
    (warning,) = v.validate(compile_source(SOURCE % "same[i] = 0.0f + a[i]")).warnings or [""]
    told = "left region 4 as it was, and this device does not tell stores" in warning
    assert told is not v.replayer.tracks_writes


def test_what_is_declared_const_is_only_read(validator: MakeValidator) -> None:
    source = SOURCE.replace('extern "C" ', "")
    made = captured(source=source, symbol="_Z1kPKfPfS1_PKj")
    made.demangled = "k(float const*, float*, float*, unsigned int const*)"
    result = validator(made).validate(compile_source(source % "same[i] = 0.0f + a[i]"))
    assert (result.verdict, result.warnings) == ("IDENTICAL", [])


def test_inputs_are_none(validator: MakeValidator) -> None:
    v = validator(captured(""))
    assert v.validate(compile_source(SOURCE % ";")).verdict == "IDENTICAL"
    result = v.validate(compile_source(SOURCE % "same[i] = 0"))
    assert result.verdict == (
        "FAIL" if v.replayer.tracks_writes else "IDENTICAL"
    )  # the values that are there


def test_a_few_faults_are_enough(validator: MakeValidator) -> None:
    """Each ends the process that holds the memory."""
    a = np.random.default_rng(5).random(N).astype(np.float32)
    orders = [np.random.default_rng(seed).permutation(N).astype(np.uint32) for seed in range(6)]
    places = [D + (i << 24) for i in range(6)]
    names = [f"o{i}" for i in range(6)]
    declared = ", ".join(f"const unsigned* {name}" for name in names)
    source = (
        f'extern "C" __global__ void k(const float* a, float* out, {declared})'
        f" {{ int i = blockIdx.x * 64 + threadIdx.x; out[i] = {' + '.join(f'a[{n}[i]]' for n in names)}; }}"
    )
    total = a[orders[0]]
    for order in orders[1:]:
        total = total + a[order]
    memory = [Memory(A, a), Memory(B, np.zeros(N, np.float32), total)]
    memory += [Memory(place, order) for place, order in zip(places, orders, strict=True)]
    v = validator(spec(compile_source(source), "k", memory, arguments(A, B, *places), items=N))
    result = v.validate(compile_source(source.replace("out[i] = a", "out[i] = 0.0f + a")))
    assert result.verdict == "IDENTICAL", result.reason
    assert v.replayer.generation <= 1 + 3
    if not v.replayer.tracks_writes:
        assert any("left region 3, 4, 5, 6, 7 and more as it was" in warning for warning in result.warnings)
