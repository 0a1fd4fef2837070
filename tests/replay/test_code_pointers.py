"""Words that point into the captured code object: which verdicts they leave, and which not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from make_capture import Memory, Spec

from kerncap.core.capture.records import Capture
from kerncap.core.code.codeobject import Variable
from kerncap.core.code.reading import read_code_object
from kerncap.core.judge.validate import Validator
from kerncap.core.replay.replayer import Replayer
from kernels import arguments, compile_source, spec

A = 0x7E1000000000
BASE = 0x7D0000000000
Make = Callable[[Spec], Capture]
ITEMS = np.arange(64, dtype=np.int32)
MORE = '__device__ int w[9]; extern "C" __global__ void more(int* o) { o[threadIdx.x] = w[o[5] % 9] * 3; }'


def variable(hsaco: str, name: str) -> Variable:
    (found,) = [x for x in read_code_object(hsaco).variables if x.name == name]
    return found


def function(hsaco: str, name: str) -> int:
    with open(hsaco, "rb") as file:
        tables = [s for s in ELFFile(file).iter_sections() if s.name in (".dynsym", ".symtab")]
        return next(x["st_value"] for table in tables for x in table.iter_symbols() if x.name == name)


CALLS = """extern "C" __device__ __attribute__((noinline, used)) int f(int x) { return x * 3 + 1; }
    typedef int (*fn)(int);
    struct __attribute__((packed)) S { int kind; fn call; };
    extern "C" __global__ void k(GIVEN, int* out) { out[threadIdx.x] = WHERE(threadIdx.x); }"""


@pytest.mark.parametrize("mode", ["default", "strict"])
@pytest.mark.parametrize(
    ("given", "where", "offset"),
    [
        ("const S* s", "s->call", 4),
        ("const unsigned long long* s", "((fn)(*s & 0xffffffffffff))", 0),
        ("const unsigned long long* s", "(*s >> 48 ? [](int x) { return x * 3 + 1; } : (fn)*s)", 0),
        ("S s", "s.call", -1),
    ],
)
def test_a_function_that_is_called_by_its_address(
    make: Make, given: str, where: str, offset: int, mode: str
) -> None:
    """The variant's own function is never called: that nothing differs proves nothing."""
    source = CALLS.replace("GIVEN", given).replace("WHERE", where)
    hsaco = compile_source(source)
    address = np.array([BASE + function(hsaco, "f")], np.uint64).view(np.uint8)
    memory = [Memory(A, ITEMS * 0, ITEMS * 3 + 1)]
    if offset >= 0:
        table = np.zeros(16, np.uint8)
        table[offset : offset + 8] = address
        memory.append(Memory(A + 0x10000, table))
        explicit = arguments(A + 0x10000, A)
    else:
        explicit = arguments(np.int32(0), np.int32(0), np.int32(0), A)
        explicit = explicit[:4] + address.tobytes() + explicit[12:]
    captured = spec(
        hsaco, "k", memory, explicit, items=64, load_base=BASE, load_delta=BASE, private_segment=1024
    )
    with Validator(make(captured)) as validator:
        assert validator.validate(mode=mode).verdict == "IDENTICAL"
        wrong = validator.validate(compile_source(source.replace("x * 3 + 1; }\n", "x * 7 + 9; }\n")), mode)
        assert wrong.verdict == "INCONCLUSIVE", wrong
        assert "point into the captured code object" in wrong.reason


def pointing(hsaco: str, held: np.ndarray) -> tuple[list[Memory], list[tuple[str, int, int]]]:
    """The module data of `v`, which holds `held`, and `p`, which points to it; and both by name."""
    v, p = variable(hsaco, "v"), variable(hsaco, "p")
    begin, end = min(v.address, p.address), max(v.address + v.size, p.address + 8)
    data = np.zeros((end - begin + 7) // 8 * 8, np.uint8)
    data[v.address - begin :][: v.size] = held.view(np.uint8)
    data[p.address - begin :][:8] = np.array([BASE + v.address], np.uint64).view(np.uint8)
    named = [("v", BASE + v.address, v.size), ("p", BASE + p.address, 8)]
    return [Memory(BASE + begin, data, None, 8, code_object=1)], named


POINTS = """__device__ int v[64]; __device__ int* p = v;
    extern "C" __global__ void k(int* out) { out[threadIdx.x] = threadIdx.x + p[threadIdx.x]; }"""


@pytest.mark.parametrize("tracks", [True, False])
@pytest.mark.parametrize("mode", ["default", "strict"])
def test_a_variable_that_points_to_another_one(make: Make, tracks: bool, mode: str) -> None:
    """In a variant it points to that variant's own, wherever the variables lie."""
    hsaco = compile_source(POINTS)
    held = ITEMS * 3 + 1
    data, named = pointing(hsaco, held)
    captured = make(
        spec(
            hsaco, "k", [Memory(A, ITEMS * 0, held + ITEMS), *data], arguments(A), items=64, load_base=BASE,
            load_delta=BASE, variables=named,
        )
    )  # fmt: skip
    replayer = Replayer(captured, track_writes=tracks)
    with replayer, Validator(captured, replayer=replayer) as validator:
        assert validator.validate(mode=mode).verdict == "IDENTICAL"
        for right in (
            POINTS + "\n",
            POINTS.replace("threadIdx.x + p", "p[threadIdx.x] * 0 + threadIdx.x + p"),
            MORE + POINTS,
        ):
            result = validator.validate(compile_source(right), mode)
            assert result.verdict == "IDENTICAL", result.reason
        for more in ("", MORE):
            wrong = compile_source(more + POINTS.replace("= threadIdx", "= 1 + threadIdx"))
            assert validator.validate(wrong, mode).verdict == "FAIL"


TABLE = """extern "C" __device__ __attribute__((noinline, used)) int f(int x) { return x * 3 + 1; }
    typedef int (*fn)(int); __device__ fn table[2] = {f, f};
    extern "C" __global__ void k(int* out) { out[threadIdx.x] = table[threadIdx.x & 1](threadIdx.x); }"""


def test_a_variable_that_holds_functions(make: Make) -> None:
    """Where they are in the variant nothing says: neither a right nor a wrong one is judged."""
    hsaco = compile_source(TABLE)
    table = variable(hsaco, "table")
    functions = np.full(2, BASE + function(hsaco, "f"), np.uint64)
    memory = [
        Memory(A, ITEMS * 0, ITEMS * 3 + 1),
        Memory(BASE + table.address, functions, None, 8, code_object=1),
    ]
    captured = spec(
        hsaco, "k", memory, arguments(A), items=64, load_base=BASE, load_delta=BASE, private_segment=1024,
        variables=[("table", BASE + table.address, 16)],
    )  # fmt: skip
    with Validator(make(captured)) as validator:
        assert validator.validate().verdict == "IDENTICAL"
        for variant in (MORE + TABLE, TABLE.replace("3 + 1", "3 + 2")):
            result = validator.validate(compile_source(variant))
            assert result.verdict == "INCONCLUSIVE", result.reason
            assert "point into the captured code object" in result.reason


def test_half_of_an_old_address_that_is_stored_over(make: Make) -> None:
    source = """__device__ int v[64];
        extern "C" __global__ void k(int* out) { out[threadIdx.x * 2] = v[threadIdx.x] + 3; }"""
    hsaco = compile_source(source)
    v, held = variable(hsaco, "v"), ITEMS * 5
    before = np.arange(128, dtype=np.int32) * 7
    before.view(np.uint64)[9] = BASE + v.address + 16
    after = before.copy()
    after[::2] = held + 3
    memory = [Memory(A, before, after), Memory(BASE + v.address, held, None, 8, code_object=1)]
    captured = make(
        spec(
            hsaco, "k", memory, arguments(A), items=64, load_base=BASE, load_delta=BASE,
            variables=[("v", BASE + v.address, 256)],
        )
    )  # fmt: skip
    for tracks in (True, False):
        replayer = Replayer(captured, track_writes=tracks)
        with replayer, Validator(captured, replayer=replayer) as validator:
            for mode in ("default", "strict"):
                right, wrong = (compile_source(MORE + source.replace("+ 3", text)) for text in ("+ 3", "+ 4"))
                assert validator.validate(right, mode).verdict == "IDENTICAL"
                assert validator.validate(wrong, mode).verdict == "FAIL"


def test_one_validator_replays_the_captured_kernel_where_it_was_in_every_mode(make: Make) -> None:
    """Only the first copy lies there: a second reference takes the same one."""
    source = """__device__ int v[64];
        extern "C" __global__ void k(int* q, int* out) { out[threadIdx.x] = q == v ? 6 : 10; }"""
    hsaco = compile_source(source)
    v = variable(hsaco, "v")
    memory = [Memory(A, ITEMS * 0, ITEMS * 0 + 6), Memory(BASE + v.address, ITEMS, None, 8, code_object=1)]
    captured = spec(
        hsaco, "k", memory, arguments(BASE + v.address, A), items=64, load_base=BASE, load_delta=BASE,
        variables=[("v", BASE + v.address, 256)],
    )  # fmt: skip
    capture = make(captured)
    with Replayer(capture) as replayer:
        for _ in range(2):
            with Validator(capture, replayer=replayer) as validator:
                for mode in ("default", "strict"):
                    assert validator.validate(mode=mode).verdict == "IDENTICAL"


def test_pointers_into_the_code_object(make: Make) -> None:
    """Words that point at a module variable hold where the code object is put back, and not in a variant."""
    source = """__device__ int v[64];
    extern "C" __global__ void k(int* p, int* out) { out[threadIdx.x] = p[threadIdx.x] + v[0]; }"""
    hsaco = compile_source(source)
    (variable,) = [x for x in read_code_object(hsaco).variables if x.name == "v"]
    base = 0x7D0000000000
    before = np.arange(64, dtype=np.int32) + 5
    memory = [
        Memory(A, np.zeros(64, np.int32), before + 5),
        Memory(base + variable.address, before, None, 8, code_object=1),
    ]
    explicit = arguments(base + variable.address, A)
    captured = spec(
        hsaco, "k", memory, explicit, items=64, load_base=base, load_delta=base,
        variables=[("v", base + variable.address, 256)],
    )  # fmt: skip
    with Validator(make(captured)) as validator:
        assert validator.validate().verdict == "IDENTICAL"
        result = validator.validate(compile_source("\n" + source))
        if result.verdict == "IDENTICAL":  # the same bytes: the captured code object itself
            result = validator.validate(compile_source("__device__ int w[9];" + source))
        assert result.verdict == "INCONCLUSIVE"
        assert "point into the captured code object" in result.reason


STALE = """__device__ int v[64];
    extern "C" __global__ void k(int** table, int* out) {
      out[threadIdx.x] = out[threadIdx.x] + v[0] + (v[1] ? table[3][threadIdx.x] : 0); }"""


@pytest.mark.parametrize("used", [0, 1])
@pytest.mark.parametrize("mode", ["default", "strict"])
def test_pointers_into_the_code_object_that_no_kernel_uses(make: Make, used: int, mode: str) -> None:
    """An old address in captured memory says nothing of a variant that does not go there."""
    hsaco, base = compile_source(STALE), 0x7D0000000000
    (variable,) = [x for x in read_code_object(hsaco).variables if x.name == "v"]
    held, before = np.full(64, 3, np.int32), np.arange(64, dtype=np.int32)
    held[1] = used
    after = before + 3 + (held if used else 0)
    table = np.zeros(64, np.uint64)
    table[3] = base + variable.address
    memory = [
        Memory(A, before, after),
        Memory(A + 0x10000, table),
        Memory(base + variable.address, held, None, 8, code_object=1),
    ]
    captured = spec(
        hsaco, "k", memory, arguments(A + 0x10000, A), items=64, load_base=base, load_delta=base,
        variables=[("v", base + variable.address, 256)],
    )  # fmt: skip
    with Validator(make(captured)) as validator:
        assert validator.validate(mode=mode).verdict == "IDENTICAL"
        for _ in range(2):
            result = validator.validate(compile_source("__device__ int w[9];" + STALE), mode)
            assert result.verdict == ("INCONCLUSIVE" if used else "IDENTICAL"), result
            assert used == ("point into the captured code object" in result.reason)
        wrong = compile_source("__device__ int w[9];" + STALE.replace("+ v[0]", "+ v[0] + 1"))
        result = validator.validate(wrong, mode)
        assert result.verdict == ("INCONCLUSIVE" if used else "FAIL")
        assert "64 elements differ" in result.reason
