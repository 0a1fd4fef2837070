"""The NVIDIA GPUs of this machine, asked of the driver by a process of its own.

CUDA is never loaded into kerncap itself: it takes memory and address space, starts threads, and does not
survive a fork.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

LIBRARY = "libcuda.so.1"
_SECONDS = 60.0
# What decides which driver is loaded and which GPUs it shows.
_DECIDING = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")


@dataclass(frozen=True, slots=True)
class CudaGpu:
    """One GPU, by the driver's number."""

    index: int
    arch: str  # "sm_90"
    name: str


@dataclass(frozen=True, slots=True)
class Driver:
    """What the driver tells. `version` is the CUDA version that it supports, "13.0"; `problem` says why there
    is no GPU to use.
    """

    version: str
    gpus: tuple[CudaGpu, ...]
    problem: str | None


def library_path(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the loader would find the driver's library."""
    environment = os.environ if environment is None else environment
    places = [Path(p) for p in environment.get("LD_LIBRARY_PATH", "").split(":") if p]
    if any((place / LIBRARY).exists() for place in places):
        return True
    try:
        return LIBRARY.encode() + b"\0" in Path("/etc/ld.so.cache").read_bytes()
    except OSError:
        return any(Path(p, LIBRARY).exists() for p in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"))


def driver(environment: Mapping[str, str] | None = None) -> Driver:
    """The driver and its GPUs; asked once for each setting of what decides them."""
    environment = os.environ if environment is None else environment
    if not library_path(environment):
        return Driver("", (), f"there is no {LIBRARY}: no NVIDIA GPU, or its driver is not installed")
    return _ask(tuple((name, environment.get(name)) for name in _DECIDING))


@lru_cache(maxsize=16)
def _ask(deciding: tuple[tuple[str, str | None], ...]) -> Driver:
    environment = {k: v for k, v in os.environ.items() if k not in ("CUDA_INJECTION64_PATH", "LD_PRELOAD")}
    for name, value in deciding:
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    try:
        done = subprocess.run(
            [sys.executable, "-c", _QUESTION],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        if not done.stdout:
            why = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
            return Driver("", (), f"NVIDIA's driver could not be asked: {why}")
        told = json.loads(done.stdout.splitlines()[-1])
        return Driver(
            str(told["version"]),
            tuple(CudaGpu(int(i), str(a), str(n)) for i, a, n in told["gpus"]),
            None if told["problem"] is None else str(told["problem"]),
        )
    except subprocess.TimeoutExpired:
        return Driver("", (), f"NVIDIA's driver did not answer within {_SECONDS:g} s")
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        return Driver("", (), f"NVIDIA's driver could not be asked: {error}")


# CUDA Driver API: cuInit, cuDriverGetVersion, cuDeviceGetCount, cuDeviceGetName, cuDeviceGetAttribute
# (75, 76: the compute capability).
_QUESTION = """
import ctypes, json

def ask():
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return "", [], str(error)
    number = ctypes.c_int()
    version = ""
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        version = "%d.%d" % (number.value // 1000, number.value % 1000 // 10)
    status = cuda.cuInit(0)
    if status != 0:
        name = ctypes.c_char_p()
        known = cuda.cuGetErrorName(status, ctypes.byref(name)) == 0 and name.value
        return version, [], "NVIDIA's driver does not start: " + (
            name.value.decode() if known else "error %d" % status
        )
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    gpus = []
    for index in range(count.value):
        device = ctypes.c_int()
        if cuda.cuDeviceGet(ctypes.byref(device), index) != 0:
            continue
        text = ctypes.create_string_buffer(256)
        cuda.cuDeviceGetName(text, 256, device)
        parts = []
        for attribute in (75, 76):
            value = ctypes.c_int()
            cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            parts.append(str(value.value))
        name = text.value.decode("utf-8", "replace")
        gpus.append([index, "sm_" + "".join(parts), name])
    return version, gpus, None if gpus else "NVIDIA's driver shows no GPU"

version, gpus, problem = ask()
print(json.dumps({"version": version, "gpus": gpus, "problem": problem}))
"""
