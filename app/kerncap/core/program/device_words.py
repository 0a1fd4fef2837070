"""What a device's users call what a kernel is launched with: HIP's and AMD's words, or CUDA's.

One place for them: texts of the command line, of the terminal UI and of reproducers ask here. In documents
the keys are the same for all devices (docs/command-line.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from kerncap.core.units import many, size

if TYPE_CHECKING:
    from kerncap.core.code.codeobject import Kernel
    from kerncap.core.program.live import KernelStats

Sizes = Sequence[int]


@dataclass(frozen=True, slots=True)
class DeviceWords:
    """The words of one sort of device. Sizes that come in are bytes, grids are in `items`."""

    items: str  # what a grid is counted in: "work-items"
    group: str  # "workgroup"
    columns: tuple[tuple[str, str], ...]  # of a code object's kernels: heading, and `kerncap inspect`'s key

    def launch(self, grid: Sizes, group: Sizes, by: str = "x") -> str:
        """A launch: how many groups of which size."""
        groups = many(prod(counts(grid, group)), self.group)
        return f"{_by(grid, by)} {self.items} in {groups} of {_by(group, by)}"

    def needs(self, kernel: KernelStats) -> str:
        """What a kernel takes of the device."""
        local = f"{kernel.lds_bytes} B"
        if kernel.dynamic_lds_bytes > kernel.lds_bytes:
            local += f" (as launched: {kernel.dynamic_lds_bytes} B)"
        # The kernel's descriptor has them in the steps in which the device hands them out.
        registers = f"{kernel.vgprs} VGPRs and {kernel.sgprs} SGPRs allocated"
        return f"{registers}, LDS {local}, scratch {kernel.scratch_bytes} B"

    def compiled(self, kernel: Kernel) -> list[tuple[str, str]]:
        """Labels and texts: what a kernel's code object says of it beyond `launch_lines`."""
        return [
            ("spilled registers", f"{kernel.vgpr_spills} VGPRs, {kernel.sgpr_spills} SGPRs"),
            ("static LDS, scratch", f"{kernel.lds_bytes} B a workgroup, {kernel.scratch_bytes} B a lane"),
        ]

    def launch_lines(self, document: Mapping[str, Any], by: str = "x") -> list[tuple[str, str]]:
        """Labels and texts: the launch of a capture, from its manifest."""
        dispatch, kernel = document["dispatch"], document["kernel"]
        lines = [
            ("grid", self.launch(dispatch["grid"], dispatch["block"], by)),
            ("LDS", f"{size(dispatch['lds_bytes'])} a workgroup"),
        ]
        if "vgprs" in kernel:
            accumulators = f", {kernel['agprs']} AGPRs" if kernel.get("agprs") else ""
            lines.append(
                ("registers", f"{kernel['vgprs']} VGPRs{accumulators}, {kernel['sgprs']} SGPRs used")
            )
        return lines


class _Cuda(DeviceWords):
    """CUDA counts a grid in blocks; the total of threads stands beside."""

    __slots__ = ()

    def launch(self, grid: Sizes, group: Sizes, by: str = "x") -> str:
        blocks = _by(counts(grid, group), by)
        return f"{blocks} blocks of {_by(group, by)} {self.items} ({prod(grid)} in all)"

    def needs(self, kernel: KernelStats) -> str:
        shared = f"{kernel.lds_bytes} B"
        if kernel.dynamic_lds_bytes > kernel.lds_bytes:
            shared += f" (as launched: {kernel.dynamic_lds_bytes} B)"
        return (
            f"{kernel.vgprs} registers a thread, shared memory {shared} a block, "
            f"local memory {kernel.scratch_bytes} B a thread"
        )

    def compiled(self, kernel: Kernel) -> list[tuple[str, str]]:
        return []  # the launch says it: a driver may have compiled the kernel itself

    def launch_lines(self, document: Mapping[str, Any], by: str = "x") -> list[tuple[str, str]]:
        dispatch, launch = document["dispatch"], document["cuda"]
        text = self.launch(dispatch["grid"], dispatch["block"], by)
        if launch["cluster"]:
            text += f", in clusters of {_by(launch['cluster'], by)} blocks"
        if launch["cooperative"]:
            text += ", cooperative"
        static, dynamic = size(launch["static_shared_bytes"]), size(launch["dynamic_shared_bytes"])
        return [
            ("grid", text),
            ("shared", f"{static} static, {dynamic} dynamic a block"),
            ("registers", f"{launch['registers']} a thread; {size(launch['local_bytes'])} of local memory"),
        ]


AMD = DeviceWords(
    "work-items",
    "workgroup",
    (
        ("vgprs used", "vgprs"),
        ("sgprs used", "sgprs"),
        ("LDS", "lds_bytes"),
        ("scratch", "scratch_bytes"),
        ("kernarg", "kernarg_bytes"),
        ("arguments", "arguments"),
    ),
)
CUDA = _Cuda(
    "threads",
    "block",
    (
        ("registers", "vgprs"),
        ("shared", "lds_bytes"),
        ("stack", "scratch_bytes"),
        ("parameter bytes", "kernarg_bytes"),
        ("parameters", "arguments"),
    ),
)


def words_of(arch: str | None) -> DeviceWords:
    """The words for an architecture: "sm_90", "gfx942"."""
    return CUDA if arch is not None and arch.startswith("sm_") else AMD


def words_of_devices(lines: Iterable[str]) -> DeviceWords:
    """The words for the devices of watched programs: "index, name, isa, product" each, with tabs between."""
    return CUDA if any(line.partition("\t")[2].startswith("sm_") for line in lines) else AMD


def counts(grid: Sizes, group: Sizes) -> list[int]:
    """How many groups a grid of items has in each direction; the last one may be a part."""
    return [-(-items // width) if width else 1 for items, width in zip(grid, group, strict=True)]


def _by(sizes: Sizes, by: str) -> str:
    return by.join(map(str, sizes))
