"""Hardware counters of the one captured kernel: the replayer under ncu, or under rocprofv3.

Both are started around kerncap-replay as it is; nothing but the captured kernel's launch is looked at.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerncap.core.build.staleness import find_variant
from kerncap.core.capture.reading import read_capture
from kerncap.core.capture.records import Capture
from kerncap.core.device.cuda_toolkit import find_tool
from kerncap.core.device.devices import Device
from kerncap.core.errors import DeviceError, KerncapError, UsageError
from kerncap.core.replay.replay import load
from kerncap.core.replay.replayer import Replayer, device_for
from kerncap.core.scratch import scratch

SCHEMA = "kerncap-counters/1"
_LEAST_LIMIT_S = 300.0  # a profiler runs the kernel many times, and saves memory in between
# What one pass can count together (ROCm, "Performance counters"; derived ones are rocprofiler's).
_ROCM_PASSES = (
    ("GRBM_GUI_ACTIVE", "SQ_WAVES", "SQ_INSTS_VALU", "SQ_INSTS_SALU", "SQ_INSTS_LDS"),
    ("FETCH_SIZE", "WRITE_SIZE"),
    ("L2CacheHit",),
)
_PERMISSION = (
    "The driver lets only administrators read hardware counters (ERR_NVGPUCTRPERM). Run as root, or set the "
    "module option NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d and load the driver again."
)


@dataclass(frozen=True)
class Counter:
    """One figure. `value` is the tool's text, without separators of thousands."""

    section: str
    name: str
    value: str
    unit: str


@dataclass(frozen=True)
class CountersResult:
    """What a profiler counted of one launch."""

    kernel: str
    symbol: str
    device: str
    tool: str
    cache: str
    variant: str | None
    counters: tuple[Counter, ...]

    def to_json(self) -> dict[str, Any]:
        """The document of `kerncap replay --counters --json`."""
        return {
            "schema": SCHEMA,
            "kernel": self.kernel,
            "symbol": self.symbol,
            "device": self.device,
            "tool": self.tool,
            "cache": self.cache,
            "variant": self.variant,
            "counters": [
                {"section": c.section, "name": c.name, "value": c.value, "unit": c.unit}
                for c in self.counters
            ],
        }


def counters(
    directory: str | os.PathLike[str],
    hsaco: str | os.PathLike[str] | None = None,
    cache: str = "warm",
    *,
    device: str | Device | None = None,
    limit_s: float = 60.0,
) -> CountersResult:
    """Runs the captured kernel (or the one in `hsaco`) once under the device's profiler.

    Raises DeviceError where the device has no counters, the tool is missing or may not read them; else as
    `replay` does.
    """
    capture = read_capture(os.fspath(directory))
    used = device_for(capture, device)
    if used.kind == "sim":
        raise DeviceError(f"{used.name} is simulated: it has no hardware counters", missing="counters")
    if cache not in ("warm", "cold"):
        raise UsageError(f"cache {cache!r} is neither warm nor cold")
    count = _with_ncu if used.kind == "cuda" else _with_rocprof
    tool, found = count(capture, used, hsaco, cache, max(limit_s, _LEAST_LIMIT_S))
    if not found:
        raise DeviceError(f"{tool} counted nothing: it did not see a launch of {capture.dispatch.symbol}")
    return CountersResult(
        kernel=capture.dispatch.demangled,
        symbol=capture.dispatch.symbol,
        device=used.name,
        tool=tool,
        cache=cache,
        variant=None if hsaco is None else str(find_variant(capture, hsaco)),
        counters=tuple(found),
    )


def _once(
    capture: Capture,
    device: Device,
    hsaco: str | os.PathLike[str] | None,
    under: list[str],
    limit_s: float,
) -> None:
    with Replayer(capture, device, limit_s=limit_s, under=under) as replayer:
        replayer.run(load(replayer, hsaco), 1)


def _with_ncu(
    capture: Capture, device: Device, hsaco: str | os.PathLike[str] | None, cache: str, limit_s: float
) -> tuple[str, list[Counter]]:
    tool = find_tool("ncu")
    if tool is None:
        raise DeviceError(
            "ncu (Nsight Compute) is neither in PATH nor in a CUDA toolkit: install it, or add its "
            "folder to PATH",
            missing="ncu",
        )
    with scratch("counters") as place:
        log = Path(place) / "ncu.log"
        under = [
            *(tool, "--csv", "--page", "details", "--log-file", str(log)),
            *("--kernel-name-base", "mangled", "--kernel-name", capture.dispatch.symbol),
            # Clocks as they are, and caches as in any replay: what is counted is the run that replay times.
            *("--launch-count", "1", "--clock-control", "none"),
            *("--cache-control", "none" if cache == "warm" else "all"),
        ]
        failure: KerncapError | None = None
        try:
            _once(capture, device, hsaco, under, limit_s)
        except KerncapError as error:
            failure = error
        text = log.read_text("utf-8", "replace") if log.exists() else ""
        found = ncu_counters(text)
        if not found:
            raise _refused(text) or failure or DeviceError(f"{tool} wrote no counters:\n{text[-2000:]}")
        return tool, found


def _refused(text: str) -> DeviceError | None:
    """What ncu says it could not do."""
    if "ERR_NVGPUCTRPERM" in text:
        return DeviceError(_PERMISSION, missing="counters")
    errors = [
        line.removeprefix("==ERROR==").strip() for line in text.splitlines() if line.startswith("==ERROR==")
    ]
    return DeviceError("ncu: " + " ".join(errors), missing="counters") if errors else None


def ncu_counters(text: str) -> list[Counter]:
    """The metrics of the first kernel in the output of `ncu --csv --page details`."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    rows = [row for row in csv.DictReader(lines[start:]) if row.get("Metric Name")]
    return [
        Counter(
            row.get("Section Name") or "",
            row["Metric Name"],
            (row.get("Metric Value") or "").replace(",", ""),
            row.get("Metric Unit") or "",
        )
        for row in rows
        if row.get("ID") == rows[0].get("ID")
    ]


def _with_rocprof(
    capture: Capture, device: Device, hsaco: str | os.PathLike[str] | None, cache: str, limit_s: float
) -> tuple[str, list[Counter]]:
    tool = shutil.which("rocprofv3") or shutil.which("rocprofv3", path="/opt/rocm/bin")
    if tool is None:
        raise DeviceError(
            "rocprofv3 is neither in PATH nor in /opt/rocm/bin: install rocprofiler-sdk, or "
            "add its folder to PATH",
            missing="rocprofv3",
        )
    found: list[Counter] = []
    for names in _ROCM_PASSES:
        with scratch("counters") as place:
            under = [tool, "--pmc", *names, "--mangled-kernels", "--output-format", "csv"]
            under += ["-d", place, "-o", "counters", "--"]
            _once(capture, device, hsaco, under, limit_s)
            for file in sorted(Path(place).rglob("*counter_collection.csv")):
                with file.open(newline="", encoding="utf-8", errors="replace") as lines:
                    found += rocprof_counters(lines, capture.dispatch.symbol)
    return tool, found


def rocprof_counters(lines: Iterable[str], symbol: str) -> list[Counter]:
    """The counters of the last dispatch of a kernel in rocprofv3's counter_collection.csv."""
    mine = [
        row
        for row in csv.DictReader(lines)
        if re.sub(r"( \[clone \.kd\]|\.kd)$", "", row.get("Kernel_Name") or "") == symbol
    ]
    last = mine[-1].get("Dispatch_Id") if mine else None
    return [
        Counter("", row.get("Counter_Name") or "", row.get("Counter_Value") or "", "")
        for row in mine
        if row.get("Dispatch_Id") == last
    ]
