"""Values of KERNCAP_SIM_* variables: what the simulator cannot use is told before anything is started."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kerncap.core.device.devices import Device, child_environment
from kerncap.core.device.sim_settings import check_settings
from kerncap.core.errors import UsageError
from kerncap.core.native import SIM_RUNTIME, find_native
from kerncap.core.program.profile import profile

BAD = [
    ("KERNCAP_SIM_THREADS", "many", "a whole number from 0 (one a core) to 1024"),
    ("KERNCAP_SIM_THREADS", "1025", "a whole number from 0"),
    ("KERNCAP_SIM_THREADS", "-1", "a whole number from 0"),
    ("KERNCAP_SIM_THREADS", " 4", "a whole number from 0"),
    ("KERNCAP_SIM_DETERMINISTIC", "yes", "0 or 1"),
    ("KERNCAP_SIM_MAX_SECONDS", "nan", "seconds from 0.001 to 10000000"),
    ("KERNCAP_SIM_MAX_SECONDS", "0", "seconds from 0.001"),
    ("KERNCAP_SIM_MAX_SECONDS", "inf", "seconds from 0.001"),
    ("KERNCAP_SIM_MAX_INSTRUCTIONS", "0", "a whole number from 1"),
    ("KERNCAP_SIM_MEMORY_GIB", "1.5", "a whole number from 1 to 4096"),
    ("KERNCAP_SIM_INTERCEPT", "all", "batch or single"),
]
ONLY_HERE = [("KERNCAP_SIM_LEVEL", "avx", "x86-64"), ("KERNCAP_SIM_HIP", "mine", "auto or own or system")]
GOOD = [
    ("KERNCAP_SIM_THREADS", "0"),
    ("KERNCAP_SIM_THREADS", "1024"),
    ("KERNCAP_SIM_DETERMINISTIC", "1"),
    ("KERNCAP_SIM_MAX_SECONDS", "1e3"),
    ("KERNCAP_SIM_MAX_SECONDS", "0.5"),
    ("KERNCAP_SIM_MAX_SECONDS", "7."),
    ("KERNCAP_SIM_MAX_INSTRUCTIONS", "18446744073709551615"),
    ("KERNCAP_SIM_MEMORY_GIB", "64"),
    ("KERNCAP_SIM_INTERCEPT", "single"),
    ("KERNCAP_SIM_THREADS", ""),
]


@pytest.mark.parametrize(("name", "value", "takes"), [*BAD, *ONLY_HERE])
def test_a_value_that_cannot_be_used_is_named_with_what_is_taken(name: str, value: str, takes: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_settings({name: value, "PATH": "/bin"})
    assert f"{name}={value!r} is not usable: it takes {takes}" in caught.value.message


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_values_that_can_be_used(name: str, value: str) -> None:
    check_settings({name: value})


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A program that starts the simulated runtime and ends with its status."""
    runtime = find_native(SIM_RUNTIME)
    if runtime is None:
        pytest.skip(f"{SIM_RUNTIME} is not built")
    where = tmp_path_factory.mktemp("simulator")
    (where / "start.c").write_text("int hsa_init(void); int main(void) { return hsa_init() != 0; }")
    words = ["cc", "start.c", "-o", "start", str(runtime), f"-Wl,-rpath,{runtime.parent}"]
    subprocess.run(words, cwd=where, check=True, timeout=60)
    return [str(where / "start")]


@pytest.mark.parametrize(("name", "value", "takes"), BAD)
def test_the_simulator_refuses_the_same(name: str, value: str, takes: str, simulator: list[str]) -> None:
    done = subprocess.run(simulator, env={name: value}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"{name}={value}" in done.stderr


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_the_simulator_takes_the_same(name: str, value: str, simulator: list[str]) -> None:
    assert subprocess.run(simulator, env={name: value}, timeout=60).returncode == 0


@pytest.mark.parametrize("value", ["0", "65", "many", "-1", "1.5"])
@pytest.mark.parametrize("kind", ["sim", "cuda", "rocm"])
def test_how_many_memory_files(fake_natives: Path, tmp_path: Path, value: str, kind: str) -> None:
    """Another variable of a watched program's, whatever its device."""
    with pytest.raises(UsageError) as caught:
        child_environment(Device(kind, "gfx942"), base={"KERNCAP_MEMORY_FILES": value})
    said = f"KERNCAP_MEMORY_FILES={value!r} is not usable: it takes a whole number from 1 to 64"
    assert said in caught.value.message
    if kind != "cuda":  # there is no libkerncap_cuda.so among the fakes
        for good in ("", "1", "64"):
            child_environment(Device(kind, "gfx942"), base={"KERNCAP_MEMORY_FILES": good})


def test_it_is_told_before_a_program_is_started(
    fake_natives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNCAP_SIM_THREADS", "many")
    with pytest.raises(UsageError, match="KERNCAP_SIM_THREADS='many' is not usable"):
        profile(["touch", str(tmp_path / "started")])
    assert not (tmp_path / "started").exists()
    with pytest.raises(UsageError, match="KERNCAP_SIM_THREADS"):
        child_environment(Device("sim", "gfx942"))
