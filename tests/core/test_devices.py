"""Devices by name, and the environment that a program is started in."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kerncap.core.device.devices import (
    Device,
    child_environment,
    full_environment,
    list_devices,
    parse_device,
    resolve_device,
)
from kerncap.core.errors import DeviceError


@pytest.mark.parametrize(
    "name", ["rocm", "rocm:0", "rocm:12", "cuda", "cuda:1", "sim:gfx942", "sim:gfx942x8", "sim:gfx90a"]
)
def test_names_round_trip(name: str) -> None:
    assert parse_device(name).name == name


@pytest.mark.parametrize(
    "name",
    ["", "gpu", "rocm:", "rocm:x", "cuda:x", "sim", "sim:", "sim:gfx9", "sim:gfx942x0", "sim:gfx942x99"],
)
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(DeviceError):
        parse_device(name)


@pytest.fixture
def nvidia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a libcuda.so.1 of C functions the one that the loader finds."""

    def make(functions: str) -> None:
        folder = tmp_path / f"driver{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "driver.c").write_text("#include <string.h>\n" + functions)
        words = ["cc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "driver.c"]
        subprocess.run(words, check=True, timeout=60)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))

    return make


TWO_GPUS = """
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
int cuDeviceGetCount(int* n) { *n = 2; return 0; }
int cuDeviceGet(int* device, int i) { *device = i; return 0; }
int cuDeviceGetName(char* name, int n, int device) {
  strcpy(name, device ? "NVIDIA A10" : "NVIDIA H200"); return 0; }
int cuDeviceGetAttribute(int* v, int what, int device) {
  *v = what == 75 ? (device ? 8 : 9) : (device ? 6 : 0);
  return 0;
}
"""


def test_nvidia_gpus_are_asked_of_the_driver(
    nvidia: Callable[[str], None], natives: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia(TWO_GPUS)
    assert resolve_device("cuda") == Device("cuda", "sm_90")
    assert resolve_device("cuda:1") == Device("cuda", "sm_86", 1)
    with pytest.raises(DeviceError, match="there are 2 NVIDIA GPUs, numbered from 0"):
        resolve_device("cuda:2")
    cuda = [found for found in list_devices() if found.device.kind == "cuda"]
    assert [(f.device.name, f.usable, f.detail) for f in cuda] == [
        ("cuda:0", True, "sm_90, NVIDIA H200"),
        ("cuda:1", True, "sm_86, NVIDIA A10"),
    ]
    monkeypatch.delenv("KERNCAP_DEVICE", raising=False)
    assert resolve_device().kind in ("rocm", "cuda")  # a real one goes before the simulated one
    (natives / "libkerncap_cuda.so").unlink()
    with pytest.raises(DeviceError, match=r"libkerncap_cuda\.so is not built"):
        resolve_device("cuda")


def test_nvidia_driver_that_does_not_start_says_why(nvidia: Callable[[str], None], natives: Path) -> None:
    nvidia(
        "int cuInit(unsigned f) { return 999; }\nint cuDriverGetVersion(int* v) { *v = 12080; return 0; }\n"
        'int cuGetErrorName(int s, const char** n) { *n = "CUDA_ERROR_UNKNOWN"; return 0; }'
    )
    with pytest.raises(DeviceError, match="NVIDIA's driver does not start: CUDA_ERROR_UNKNOWN"):
        resolve_device("cuda")
    nvidia(  # a driver that crashes
        "int cuInit(unsigned f) { *(volatile int*)0 = 1; return 0; }\n"
        "int cuDriverGetVersion(int* v) { return 1; }"
    )
    with pytest.raises(DeviceError, match="NVIDIA's driver could not be asked: it ended with status -11"):
        resolve_device("cuda")


def test_environment_of_a_program_on_an_nvidia_gpu(natives: Path) -> None:
    injected = {"CUDA_INJECTION64_PATH": f"{natives}/libkerncap_cuda.so"}
    session = {"KERNCAP_SESSION": "/s"}
    assert (
        child_environment(Device("cuda", "sm_90"), Path("/s"), {"LD_PRELOAD": "/a.so"}) == injected | session
    )
    base = {"CUDA_VISIBLE_DEVICES": "3,5"}
    assert child_environment(Device("cuda", "sm_90", 1), None, base)["CUDA_VISIBLE_DEVICES"] == "5"
    assert child_environment(Device("cuda", "sm_90", 1), None, {})["CUDA_VISIBLE_DEVICES"] == "1"
    # Nothing of it is left for a program on another device.
    assert "CUDA_INJECTION64_PATH" not in full_environment(Device("sim", "gfx942"), None, injected)


def test_auto_takes_what_can_be_used(fake_natives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNCAP_DEVICE", "auto")
    usable = [found.device for found in list_devices() if found.usable]
    assert resolve_device().kind == usable[0].kind
    assert resolve_device("sim:gfx942") == Device("sim", "gfx942")


def test_nothing_built_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNCAP_NATIVE_DIR", str(tmp_path))
    with pytest.raises(DeviceError, match="not built"):
        resolve_device("sim:gfx942")
    with pytest.raises(DeviceError, match="libkerncap_hsa"):
        child_environment(Device("sim", "gfx942"))


@pytest.fixture
def natives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "libkerncap_cuda.so",
        "libkerncap_hsa.so",
        "sim/libhsa-runtime64.so.1",
        "sim-hip/libamdhip64.so.6",
    ):
        path = tmp_path / "native" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setenv("KERNCAP_NATIVE_DIR", str(tmp_path / "native"))
    return tmp_path / "native"


def test_what_the_user_has_stays(natives: Path) -> None:
    base = {"LD_PRELOAD": "/a.so /b.so", "LD_LIBRARY_PATH": "/x:/y", "KERNCAP_SIM_HIP": "own"}
    changes = child_environment(Device("sim", "gfx942", count=2), Path("/s"), base)
    assert changes == {
        "LD_PRELOAD": f"/a.so /b.so:{natives}/libkerncap_hsa.so",
        "LD_LIBRARY_PATH": f"{natives}/sim:/x:/y:{natives}/sim-hip",
        "KERNCAP_SIM": "gfx942x2",
        "KERNCAP_SESSION": "/s",
    }


def test_real_device_keeps_the_systems_runtime(natives: Path) -> None:
    changes = child_environment(Device("rocm", "gfx942", 3), None, {})
    assert changes == {"LD_PRELOAD": f"{natives}/libkerncap_hsa.so", "ROCR_VISIBLE_DEVICES": "3"}


def test_machines_own_hip_is_not_hidden(natives: Path, tmp_path: Path) -> None:
    (tmp_path / "rocm" / "lib").mkdir(parents=True)
    (tmp_path / "rocm" / "lib" / "libamdhip64.so.6").touch()
    base = {"ROCM_PATH": str(tmp_path / "rocm")}
    assert child_environment(Device("sim", "gfx942"), None, base)["LD_LIBRARY_PATH"] == f"{natives}/sim"
    base["KERNCAP_SIM_HIP"] = "own"
    assert child_environment(Device("sim", "gfx942"), None, base)["LD_LIBRARY_PATH"].endswith("/sim-hip")
