"""The resident process: address ranges that are taken (R1), damage (R2), times (R8, R9), dumps."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from make_capture import Memory, Spec, write

from kerncap.core.capture.reading import read_capture
from kerncap.core.capture.records import Capture
from kerncap.core.errors import DamagedCaptureError, DeviceError
from kerncap.core.judge.validate import validate
from kerncap.core.native import REPLAYER, SIM_RUNTIME, native_path
from kerncap.core.replay.launch import captured_launch
from kerncap.core.replay.replay import Sampler, load, measure, race, replay
from kerncap.core.replay.replayer import Replayer
from kerncap.core.replay.timing import Speed
from kernels import arguments, compile_source, spec

A = 0x7E1000000000
Make = Callable[[Spec], Capture]
ADD = """extern "C" __global__ void k(const int* a, int* c, int n) {
  int i = blockIdx.x * 64 + threadIdx.x; int s = 0;
  for (int j = 0; j < n; ++j) s += a[(i + j) & 255] ^ j;
  c[i] = s; }"""


def add_spec(address: int = A, n: int = 4) -> Spec:
    a = np.arange(256, dtype=np.int32)
    index = np.arange(256)
    after = sum(a[(index + j) & 255] ^ j for j in range(n)).astype(np.int32)
    memory = [Memory(address, a), Memory(A + 0x100000, np.zeros(256, np.int32), after)]
    return spec(compile_source(ADD), "k", memory, arguments(address, A + 0x100000, np.int32(n)))


def _without_randomisation() -> None:
    ctypes.CDLL(None).personality(0x0040000)


def _libc_address() -> int:
    """Where libc lies in kerncap-replay with address randomisation off."""
    shown = subprocess.run(
        [native_path(REPLAYER)],
        env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"},
        capture_output=True,
        text=True,
        timeout=30,
        preexec_fn=_without_randomisation,
        check=True,
    ).stdout
    match = re.search(r"libc\.so\.6 .*\(0x([0-9a-f]+)\)", shown)
    assert match, shown
    return int(match[1], 16)


def test_a_taken_range_is_answered_by_another_layout(tmp_path: Path) -> None:  # R1
    address = _libc_address() + 0x10000
    capture = write(tmp_path / "capture", add_spec(address))
    process = subprocess.run(
        [native_path(REPLAYER), capture, "--runtime", native_path(SIM_RUNTIME)],
        input="quit\n",
        env={**os.environ, "KERNCAP_SIM": "gfx942"},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=_without_randomisation,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    (layouts,) = re.findall(r"layouts=(\d+)", process.stdout)
    assert int(layouts) >= 2


def test_a_range_that_cannot_be_had_is_named(make: Make) -> None:  # R1
    beyond = 0x7FFFFFFFF000  # the last page below the end of user space is never given out
    capture = make(add_spec(beyond))
    with pytest.raises(DeviceError, match=r"region 2.*0x7ffffffff000.*8 layouts") as error:
        Replayer(capture).start()
    assert error.value.exit_code == 4


@pytest.mark.parametrize("name", ["memory.pre", "memory.post"])
@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_damage_is_found_and_named(tmp_path: Path, name: str, damage: str) -> None:  # R2
    big = add_spec()
    big.memory.append(Memory(A + 0x1000000, np.arange(1 << 20, dtype=np.int32)))
    path = write(tmp_path / "capture", big)
    data = bytearray((path / name).read_bytes())
    where = min(2_500_000, len(data) - 1)
    if damage == "flip":
        data[where] ^= 0x10
    else:
        del data[where:]
    (path / name).write_bytes(data)
    with pytest.raises(DamagedCaptureError, match=name) as error:
        validate(path)
    assert error.value.exit_code == 6
    assert str(where if damage == "cut" else where >> 20 << 20) in str(error.value)
    assert "extract it again" in str(error.value)


def test_a_damaged_code_object_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "capture", add_spec())
    code = next((path / "code").iterdir())
    code.write_bytes(code.read_bytes()[:-100])
    with pytest.raises(DamagedCaptureError, match=r"code/"):
        validate(path)


def test_times_on_a_simulated_device_are_cycles_and_say_so(make: Make) -> None:
    result = replay(make(add_spec()).path).to_json()
    assert "simulated" in result["timer"]
    assert len(set(result["samples_ns"])) == 1
    assert result["ci95_ns"] == [result["median_ns"]] * 2
    assert result["stdev_ns"] == 0
    assert 0 < result["launch_ns"] < result["median_ns"]
    keys = "schema kernel device timer cache iterations samples_ns median_ns mean_ns min_ns max_ns stdev_ns"
    assert set(result) >= {*keys.split(), "ci95_ns", "output"}


def test_iterations_are_exact(make: Make) -> None:
    assert replay(make(add_spec()).path, iterations=7).to_json()["iterations"] == 7


def test_short_and_long_kernels_are_timed_alike(make: Make) -> None:  # R9
    sleep = """extern "C" __global__ void k(int* c, int n) {
      for (int i = 0; i < n; ++i) __builtin_amdgcn_s_sleep(127); c[0] = n; }"""
    times = {}
    for n in (1, 1000, 300_000):
        memory = [Memory(A, np.zeros(1, np.int32), np.array([n], np.int32))]
        capture = make(spec(compile_source(sleep), "k", memory, arguments(A, np.int32(n)), items=64))
        times[n] = replay(capture.path, iterations=1).to_json()["median_ns"]
    assert times[1] < 20_000
    assert times[300_000] > 1e9
    each = (times[1000] - times[1]) / 999
    assert times[300_000] == pytest.approx(each * 300_000, rel=0.02)


def test_a_faster_variant_is_faster(make: Make) -> None:
    capture = make(add_spec(n=64))
    unrolled = compile_source(ADD.replace("for (int j", '_Pragma("unroll 16") for (int j'), flags=("-O3",))
    with Replayer(capture) as replayer:
        baseline, variant = load(replayer), load(replayer, unrolled)
        again = race(replayer, baseline, baseline)
        found = race(replayer, baseline, variant)
    assert (again.verdict, again.ratio, again.noise) == (Speed.SAME, 1.0, 0.0)
    assert found.verdict in (Speed.FASTER, Speed.SLOWER)
    assert found.ci95 == (found.ratio, found.ratio)


def test_timestamps_that_cannot_be_are_rejected_and_counted(make: Make) -> None:  # R8
    with Replayer(make(add_spec())) as replayer:
        sampler = Sampler(replayer, load(replayer))
        times = iter([(100, 100), (200, 150), (0, 90), (300, 400)])
        real = replayer.run
        replayer.run = lambda *a, **k: np.array([next(times)], np.int64)  # type: ignore[method-assign]
        sampler.prepare = lambda: None  # type: ignore[method-assign]
        timing = measure(sampler, iterations=4)
        replayer.run = real  # type: ignore[method-assign]
    assert timing.rejected == 3
    assert timing.samples_ns.tolist() == [100.0]


def test_dumps(make: Make, tmp_path: Path) -> None:
    capture = make(add_spec())
    result = replay(capture.path, iterations=1, dump=tmp_path / "out").to_json()
    assert result["output"] == str(tmp_path / "out")
    found = np.fromfile(tmp_path / "out" / f"{A + 0x100000:x}.bin", np.uint8)
    assert np.array_equal(found, capture.after(A + 0x100000, 1024))


def test_captures_with_holes_and_many_regions(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    big = add_spec()
    zeros = np.zeros(8 << 20, np.uint8)
    zeros[5 << 20] = 1
    big.memory.append(Memory(A + 0x1000000, zeros))
    for i in range(300):
        data = rng.integers(0, 256, int(rng.integers(1, 9000)), np.uint8)
        big.memory.append(Memory(A + 0x4000000 + i * 0x4000 + int(rng.integers(0, 512)), data))
    path = write(tmp_path / "capture", big)
    result = validate(path, mode="strict")
    assert result.verdict == "IDENTICAL"
    assert result.compared_bytes == sum(len(m.bytes_before) for m in big.memory)
    assert read_capture(path).pre_bytes > 8 << 20


def test_names_with_spaces_and_other_letters(tmp_path: Path) -> None:
    folder = tmp_path / "a dir, 100% \u00fc"
    folder.mkdir()
    path = write(folder / "capture", add_spec())
    variant = folder / "my variant.hsaco"
    variant.write_bytes(compile_source(ADD, flags=("-O1",)).read_bytes())
    assert validate(path, variant).verdict == "IDENTICAL"
    result = replay(path, variant, iterations=1, dump=folder / "out dir").to_json()
    assert (folder / "out dir" / "regions.json").exists()
    assert result["variant"] == str(variant)


def test_a_replayer_that_is_stopped_from_outside_is_given_up_at_the_limit(make: Make) -> None:
    capture = make(add_spec())
    with Replayer(capture, limit_s=1.0) as replayer:
        variant = replayer.load(captured_launch(capture))
        os.kill(replayer.process.pid, signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(DeviceError, match="stopped from outside"):
            replayer.run(variant)
        assert time.monotonic() - started < 20  # and not the 32 s that it may take to answer
        assert len(replayer.run(variant)) == 1
