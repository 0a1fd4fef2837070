"""Devices by name, and the environment that a program is started in."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerncap.core.devices import Device, child_environment, list_devices, parse_device, resolve_device
from kerncap.core.errors import DeviceError, UsageError


@pytest.mark.parametrize("name", ["rocm", "rocm:0", "rocm:12", "sim:gfx942", "sim:gfx942x8", "sim:gfx90a"])
def test_names_round_trip(name: str) -> None:
    assert parse_device(name).name == name


@pytest.mark.parametrize(
    "name", ["", "gpu", "rocm:", "rocm:x", "sim", "sim:", "sim:gfx9", "sim:gfx942x0", "sim:gfx942x99"]
)
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(DeviceError):
        parse_device(name)


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:x"])
def test_what_is_not_supported_yet_says_what_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"NVIDIA GPUs are not supported yet; rocm\[:N\], sim:gfx942"):
        parse_device(name)
    monkeypatch.setenv("KERNCAP_DEVICE", name)
    with pytest.raises(UsageError):
        resolve_device()
    assert all(found.device.kind in ("rocm", "sim") for found in list_devices())


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
    for name in ("libkerncap_hsa.so", "sim/libhsa-runtime64.so.1", "sim-hip/libamdhip64.so.6"):
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
