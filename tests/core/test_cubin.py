"""Cubins: what ptxas wrote down, and what may run where. `cubins/kernels.cubin` is nvcc's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerncap.core.code.codeobject import CodeObjectError, Target, sm_runs_on
from kerncap.core.code.cubin import Cubin
from kerncap.core.code.reading import read_code_object, read_file

CUBIN = Path(__file__).parent / "cubins/kernels.cubin"
ADD = "_Z3addPKfS0_Pfi5Mixed"
LARGE = "_Z5large3BigcPs"


@pytest.fixture
def cubin() -> Cubin:
    code = read_code_object(CUBIN)
    assert isinstance(code, Cubin)
    return code


def test_target_and_kernels(cubin: Cubin) -> None:
    assert str(cubin.target) == "nvptx64-nvidia-cuda--sm_90a"
    assert {ADD, LARGE} < set(cubin.kernel_names)
    assert len(cubin.kernel_names) == 3
    assert not cubin.relocatable
    assert [type(code) for code in read_file(CUBIN)] == [Cubin]


def test_parameters_as_nvcc_lays_them_out(cubin: Cubin) -> None:
    add = cubin.kernel(ADD)
    assert [(a.offset, a.size) for a in add.arguments] == [(0, 8), (8, 8), (16, 8), (24, 4), (32, 32)]
    large = cubin.kernel(LARGE)  # parameters beyond 4 KiB have an attribute of their own
    assert [(a.offset, a.size) for a in large.arguments] == [(0, 5000), (5000, 1), (5008, 8)]
    assert add.kernarg_bytes == 64
    assert add.max_workgroup == 128
    assert add.vgprs > 0


def test_static_shared_memory_without_what_the_system_takes(cubin: Cubin) -> None:
    hidden = next(name for name in cubin.kernel_names if "hidden" in name)
    assert cubin.kernel(hidden).lds_bytes == 64 * 4
    assert cubin.kernel(ADD).lds_bytes == 0


def test_variables_and_what_they_hold(cubin: Cubin) -> None:
    assert {v.name: (v.size, v.writable) for v in cubin.variables} == {
        "factors": (16, False),
        "counter": (4, True),
    }
    assert cubin.initial("factors") == bytes.fromhex("0000803f000000400000404000008040")
    assert cubin.initial("counter") == bytes(4)
    assert cubin.initial("other") is None


def test_a_kernel_that_is_not_there_is_answered_with_those_that_are(cubin: Cubin) -> None:
    with pytest.raises(CodeObjectError, match=r"has no kernel nothing; it has .*add"):
        cubin.kernel("nothing")


@pytest.mark.parametrize("keep", [100, 2000, 6000])
def test_cubin_cut_short_is_an_error_of_its_own(tmp_path: Path, keep: int) -> None:
    file = tmp_path / "short.cubin"
    file.write_bytes(CUBIN.read_bytes()[:keep])
    with pytest.raises(CodeObjectError):
        list(read_code_object(file).kernels())


@pytest.mark.parametrize(
    ("code", "device", "fits"),
    [
        ("sm_90", "sm_90", True),
        ("sm_90a", "sm_90", True),
        ("sm_80", "sm_86", True),
        ("sm_86", "sm_80", False),
        ("sm_80", "sm_90", False),
        ("sm_100a", "sm_103", False),
        ("sm_100f", "sm_103", True),
        ("gfx942", "sm_90", False),
    ],
)
def test_what_runs_where(code: str, device: str, fits: bool) -> None:
    assert sm_runs_on(code, device) is fits
    assert (
        Target.parse(f"nvptx64-nvidia-cuda--{code}").runs_on(Target.parse(f"nvptx64-nvidia-cuda--{device}"))
        is fits
    )
