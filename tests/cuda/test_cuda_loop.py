"""The commands on `--device cuda`, end to end on the fake driver."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fake_machine import FakeGpu

import kerncap
from kerncap.core.capture.reading import read_capture
from kerncap.core.device.cuda_driver import Driver
from kerncap.core.device.devices import Device, list_devices, resolve_device
from kerncap.core.doctor.cuda_doctor import cuda_checks, cuda_self_test
from kerncap.core.errors import DamagedCaptureError, DeviceError, UsageError
from kerncap.core.extract.capture_run import Progress
from kerncap.core.replay import counters
from kerncap.core.replay.replay import Sampler, load
from kerncap.core.replay.replayer import Replayer, device_for
from kerncap.core.replay.replies import Reply
from kerncap.demo.building import hip_device
from support.package import APP


@pytest.fixture(autouse=True)
def here(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in gpu.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("KERNCAP_DEVICE", raising=False)


@pytest.fixture(scope="module")
def isolated(gpu: FakeGpu, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The third launch of saxpy, as a reproducer."""
    out = tmp_path_factory.mktemp("extracted") / "saxpy"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in gpu.environment.items():
            patch.setenv(name, value)
        result = kerncap.extract(
            "saxpy", list(map(str, gpu.command("saxpy", 5))), device="cuda", dispatch=3, output=out, stdout=2
        )
    assert (result.device, result.arch, result.program) == ("cuda", "sm_90", "ended")
    assert result.baseline["verdict"] == "IDENTICAL"
    return out


def command(*words: object, code: int = 0) -> str:
    """What a kerncap command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "kerncap", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(APP)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_the_gpu_is_found_and_goes_before_simulated_ones() -> None:
    found = [f for f in list_devices() if f.device.kind == "cuda"]
    assert [(f.device, f.usable, f.detail) for f in found] == [
        (Device("cuda", "sm_90", 0), True, "sm_90, Fake GPU")
    ]
    assert resolve_device().kind in ("rocm", "cuda")


def test_profile_counts_and_times_on_the_gpus_clock(gpu: FakeGpu) -> None:
    report = kerncap.profile(list(map(str, gpu.command("saxpy", 7))), device="cuda", stdout=2)
    assert (report.device, report.clock, report.dispatches, report.timed) == ("cuda", "gpu", 7, 7)
    assert [(k.name, k.kind) for k in report.kernels] == [("saxpy", "cuda")]
    assert report.warnings == []


@pytest.mark.parametrize("replays", [True, False])
def test_a_snapshot_that_is_damaged_at_once_is_no_reproducer(
    gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replays: bool
) -> None:
    """Whoever reads the memory first finds it: the replayer, or, where there is none, the check itself."""

    def on_progress(progress: Progress) -> None:
        if progress.stage != "checking":
            return
        (memory,) = tmp_path.rglob("memory.pre")
        with memory.open("r+b") as file:
            first = file.read(1)[0]
            file.seek(0)
            file.write(bytes([first ^ 1]))

    def start(self: Replayer) -> None:
        raise DeviceError("no GPU here")

    if not replays:
        monkeypatch.setattr(Replayer, "start", start)
    words = list(map(str, gpu.command("saxpy", 2)))
    with pytest.raises(DamagedCaptureError, match=r"memory\.pre"):
        kerncap.extract(
            "saxpy", words, device="cuda", output=tmp_path / "o", stdout=2, on_progress=on_progress
        )
    assert list(tmp_path.iterdir()) == []


def test_without_a_replay_the_capture_is_checked_and_kept(
    gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(self: Replayer) -> None:
        raise DeviceError("no GPU here")

    monkeypatch.setattr(Replayer, "start", start)
    words = list(map(str, gpu.command("saxpy", 2)))
    result = kerncap.extract("saxpy", words, device="cuda", output=tmp_path / "o", stdout=2)
    assert result.baseline == {"verdict": "INCONCLUSIVE", "reason": "no GPU here"}


def test_program_of_another_sort_says_why_nothing_was_seen(tmp_path: Path) -> None:
    """Nothing is preloaded: that a program is linked statically is no reason."""
    (tmp_path / "p.c").write_text("int main(void) { return 0; }")
    subprocess.run(["cc", "-static", tmp_path / "p.c", "-o", tmp_path / "p"], check=True, timeout=60)
    report = kerncap.profile([str(tmp_path / "p")], device="cuda")
    (warning,) = report.warnings
    assert warning.startswith("no dispatch was seen. No GPU runtime")


def test_replay_and_validate_take_the_captured_kind_of_device(isolated: Path) -> None:
    assert device_for(read_capture(isolated)) == Device("cuda", "sm_90")
    timed = kerncap.replay(isolated, iterations=3)
    assert (timed.device, timed.simulated, timed.timing.n) == ("cuda", False, 3)
    assert kerncap.validate(isolated).verdict == "IDENTICAL"
    assert kerncap.validate(isolated, mode="strict").verdict == "IDENTICAL"


@pytest.mark.parametrize(("ns", "batch"), [(20_000, 16), (60_000, 1)])
def test_short_kernels_are_timed_one_behind_the_other(
    isolated: Path, monkeypatch: pytest.MonkeyPatch, ns: int, batch: int
) -> None:
    """Where a second run gives the same, which the fake kernel's does not."""
    with Replayer(read_capture(isolated)) as replayer:
        sampler = Sampler(replayer, load(replayer))
        monkeypatch.setattr(replayer, "run", lambda *_: np.array([[1, 1 + ns], [1 + ns, 1 + 2 * ns]]))
        monkeypatch.setattr(replayer, "request", lambda *_: Reply(values={"same": "1"}))
        sampler.prepare()
        monkeypatch.undo()
        assert sampler.batch == batch


@pytest.mark.parametrize(
    ("variant", "words"),
    [(2, "elements differ"), (3, "outside of every captured region"), (4, "CUDA_ERROR_ILLEGAL_ADDRESS")],
)
def test_wrong_variants_fail(gpu: FakeGpu, isolated: Path, variant: int, words: str) -> None:
    result = kerncap.validate(isolated, gpu.cubin(variant))
    assert result.verdict == "FAIL"
    assert words in result.reason
    assert kerncap.validate(isolated).verdict == "IDENTICAL"  # nothing of it is left


def test_a_variant_that_is_right_does_not_fail(gpu: FakeGpu, isolated: Path) -> None:
    # The fake kernels cannot be emptied, so bytes that had their value before stay an open question.
    assert kerncap.validate(isolated, gpu.cubin(1)).verdict == "INCONCLUSIVE"
    assert command("validate", isolated, "--variant", gpu.cubin(1), code=3).startswith("INCONCLUSIVE")


def test_a_variant_of_another_kernel_or_device_does_not_fit(isolated: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.cubin"
    other.write_bytes((Path(__file__).parents[1] / "core/cubins/kernels.cubin").read_bytes())
    with pytest.raises(UsageError, match="has no kernel saxpy"):
        kerncap.validate(isolated, other)
    with pytest.raises(DeviceError, match="sim:gfx942 cannot replay a capture of sm_90"):
        kerncap.replay(isolated, device="sim:gfx942")


def test_extract_from_the_command_line_speaks_of_threads_and_blocks(gpu: FakeGpu, tmp_path: Path) -> None:
    words = ("extract", "saxpy", "--device", "cuda:0", "-o", tmp_path / "out", "--", *gpu.command("saxpy", 3))
    text = command(*words)
    assert re.search(r"^saxpy \([0-9a-f]{16}\), dispatch 1, on cuda:0$", text, re.M)
    assert "grid      391x1x1 blocks of 256x1x1 threads (100096 in all)" in text
    assert "baseline  IDENTICAL" in text
    assert kerncap.validate(tmp_path / "out", device="cuda:0").verdict == "IDENTICAL"


def test_inspect_shows_the_launch_as_cuda_has_it(isolated: Path) -> None:
    text = command("inspect", isolated)
    assert "391x1x1 blocks of 256x1x1 threads" in text
    assert "16 a thread" in text
    document = json.loads(command("inspect", isolated, "--json"))["capture"]["cuda"]
    assert (document["grid_blocks"], document["dynamic_shared_bytes"]) == ([391, 1, 1], 0)


NCU = r"""#!/bin/bash
# Starts what it is given, as ncu does, and writes what ncu writes.
log=
while [ "$1" != "${1#-}" ]; do
  case $1 in --csv) shift;; --log-file) log=$2; shift 2;; *) echo "$1 $2" >> "$NCU_ASKED"; shift 2;; esac
done
if [ -n "$NCU_REFUSES" ]; then
  echo "==ERROR== $NCU_REFUSES" > "$log"
  exit 1
fi
"$@" || exit
cat > "$log" <<END
==PROF== Connected to process 1
==PROF== Disconnected from process 1
"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"
"0","1","saxpy","GPU Speed Of Light Throughput","Duration","ns","4,352","",
"0","1","saxpy","GPU Speed Of Light Throughput","Memory Throughput","%","24.58","",
"0","1","saxpy","GPU Speed Of Light Throughput","","","","SOLBottleneck",
"1","1","saxpy","GPU Speed Of Light Throughput","Duration","ns","9","",
END
"""


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that stands for ncu, first in PATH; the file of what it was asked."""
    tool = tmp_path / "bin/ncu"
    tool.parent.mkdir()
    tool.write_text(NCU)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("NCU_ASKED", str(tmp_path / "asked"))
    return tmp_path / "asked"


def test_counters_are_those_of_the_one_kernel(isolated: Path, ncu: Path) -> None:
    text = command("replay", isolated, "--counters")
    assert "saxpy on cuda, one run under" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["GPU", "Speed", "Of", "Light", "Throughput", "Duration", "4352", "ns"] in lines
    asked = ncu.read_text().splitlines()
    assert "--kernel-name saxpy" in asked
    assert "--cache-control none" in asked
    document = json.loads(command("replay", isolated, "--counters", "--cache", "cold", "--json"))
    assert [(c["name"], c["value"]) for c in document["counters"]] == [
        ("Duration", "4352"),
        ("Memory Throughput", "24.58"),
    ]
    assert "--cache-control all" in ncu.read_text().splitlines()


def test_counters_that_may_not_be_read_say_what_to_do(
    isolated: Path, ncu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCU_REFUSES", "ERR_NVGPUCTRPERM - The user does not have permission")
    with pytest.raises(DeviceError, match="NVreg_RestrictProfilingToAdminUsers=0"):
        counters.counters(isolated)
    monkeypatch.setenv("NCU_REFUSES", "Failed to initialize the profiler: LibraryNotLoaded")
    with pytest.raises(DeviceError, match="ncu: Failed to initialize the profiler"):
        counters.counters(isolated)


def test_counters_without_the_tool_say_so(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "find_tool", lambda name: None)
    with pytest.raises(DeviceError, match=r"ncu \(Nsight Compute\) is neither in PATH"):
        counters.counters(isolated)
    assert "--counters runs the kernel once" in command(
        "replay", isolated, "--counters", "--iterations", "3", code=2
    )


def test_rocprofs_table() -> None:
    lines = [
        '"Dispatch_Id","Kernel_Name","Counter_Name","Counter_Value"',
        '1,"_Z5scalePf.kd","SQ_WAVES",7',
        '2,"_Z5otherPf.kd","SQ_WAVES",9',
        '3,"_Z5scalePf.kd","SQ_WAVES",64',
        '3,"_Z5scalePf.kd","GRBM_GUI_ACTIVE",1234',
    ]
    found = counters.rocprof_counters(lines, "_Z5scalePf")
    assert [(c.name, c.value) for c in found] == [("SQ_WAVES", "64"), ("GRBM_GUI_ACTIVE", "1234")]


def test_the_demonstration_is_hip_and_stays_on_the_simulated_gpu(tmp_path: Path) -> None:
    assert hip_device(None) == "sim:gfx942"
    assert hip_device("sim:gfx90a") == "sim:gfx90a"
    assert "it cannot run on cuda" in command(
        "demo", "--build", tmp_path / "demo", "--device", "cuda", code=4
    )
    assert not (tmp_path / "demo").exists()


def test_doctor_tells_of_the_toolkit_where_there_is_no_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc, cupti = tmp_path / "nvcc", tmp_path / "libcupti.so.13"
    nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n")
    nvcc.chmod(0o755)
    cupti.touch()
    monkeypatch.setattr(
        "kerncap.core.doctor.cuda_doctor.driver", lambda: Driver("", (), "there is no libcuda.so.1")
    )
    monkeypatch.setenv("KERNCAP_NVCC", str(nvcc))
    monkeypatch.setenv("KERNCAP_CUPTI", str(cupti))
    found = [(check.name, check.state, check.detail) for check in cuda_checks()]
    assert found[0] == ("cuda", "note", "there is no libcuda.so.1")
    assert ("cuda", "ok", f"libcupti: {cupti}") in found
    assert ("compiler", "ok", f"{nvcc} 13.0") in found
    assert not [state for _, state, _ in found if state == "problem"]


def test_doctor_tells_of_the_driver_and_its_self_test_needs_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {(check.name, check.state): check.detail for check in cuda_checks()}
    assert found["cuda", "ok"].startswith("libcupti: ")
    monkeypatch.setenv("KERNCAP_NVCC", "/nowhere/nvcc")
    (only,) = cuda_self_test(resolve_device("cuda"))
    assert (only.name, only.state) == ("self-test build", "problem")
    assert "there is no nvcc" in only.detail
