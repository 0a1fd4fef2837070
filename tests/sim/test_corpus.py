"""Every kernel of tests/kernels, at -O0 and -O3, gives on the simulated GPUs what the same source gives on
the host: bit for bit, except where a transcendental function is involved."""

from __future__ import annotations

import ctypes

import corpus
import device_code
import numpy as np
import pytest
from memory import HostMemory, Table, buffers, run_on_host
from simulator import Simulator

CASES = corpus.all_cases()


def as_float(data: np.ndarray, dtype: object) -> np.ndarray:
    if dtype == "bf16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return data


def compare(name: str, got: np.ndarray, want: np.ndarray, case: corpus.Case, dtype: object) -> None:
    if case.rtol == 0:
        # a NaN's sign and payload are not part of the agreement
        if want.dtype.kind == "f":
            equal = (got.view(f"u{got.itemsize}") == want.view(f"u{got.itemsize}")) | (
                np.isnan(got) & np.isnan(want)
            )
        else:
            equal = got == want
        bad = np.argwhere(~equal)
        assert bad.size == 0, (
            f"{name}: {len(bad)} of {want.size} elements differ, first at {tuple(bad[0])}: "
            f"{got[tuple(bad[0])]!r}, want {want[tuple(bad[0])]!r}"
        )
    else:
        np.testing.assert_allclose(
            as_float(got, dtype).astype(np.float64),
            as_float(want, dtype).astype(np.float64),
            rtol=case.rtol,
            atol=case.atol,
            err_msg=name,
        )


@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize(
    ("index", "arch"),
    [pytest.param(n, arch, id=f"{c.id}-{arch}") for n, c in enumerate(CASES) for arch in c.arches],
)
def test_agrees_with_host(
    index: int, arch: str, level: str, simulator: Simulator, code_directory, compiled
) -> None:
    compiled(arch, level)
    case = CASES[index]
    source = device_code.KERNELS / f"{case.source}.hip"

    library = ctypes.CDLL(str(device_code.compile_host(source, code_directory)))
    host_variables = {}
    for name, value in case.variables.items():
        memory = (ctypes.c_char * value.nbytes).in_dll(library, name)
        memory[:] = value.tobytes()
        host_variables[name] = memory
    host = HostMemory(case.arguments)
    run_on_host(library, case.kernel, host, case.grid, case.block)

    script = simulator.script(device_code.compile_device(source, level, code_directory, arch))
    if case.in_order:
        script.options.append("deterministic")
    for name, value in case.variables.items():
        script.variable(name, value)
    script.add_buffers(case.arguments)
    script.launch(case.kernel, case.arguments, case.grid, case.block, case.lds)
    items = buffers(case.arguments)
    handles = [script.buffer(item) for item in items]
    results = script.run(handles, case.variables)

    changed = False
    for number, (item, handle, want) in enumerate(zip(items, handles, host.copies, strict=True)):
        if isinstance(item, Table):
            continue  # pointers; nothing writes to one
        changed |= bool((want.view(np.uint8) != item.view(np.uint8)).any())
        compare(f"argument {number}", results[handle], want, case, case.dtypes.get(number))
    for name, value in case.variables.items():
        want = np.frombuffer(bytes(host_variables[name]), value.dtype)
        compare(name, results[name], want, case, None)
    # usw(50) is the branch that does nothing
    assert changed or case.id == "control_flow-usw", "the case computes nothing"


def test_every_kernel_has_a_case() -> None:
    defined = {k for s in device_code.corpus_sources() for k in device_code.kernel_names(s)}
    covered = {c.kernel for c in CASES}
    assert defined == covered
