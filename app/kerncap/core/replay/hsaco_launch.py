"""Whether and how the kernel of an AMD code object can take the place of the captured one.

Checked: symbol, arch, LDS, workgroup, arguments (LLVM AMDGPUUsage, "Kernel Argument Metadata").
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kerncap.core.capture.records import Capture
from kerncap.core.code.arguments import difference, named_kernel
from kerncap.core.code.codeobject import Argument, CodeObject, CodeObjectError, Kernel, Target
from kerncap.core.code.reading import read_code_object
from kerncap.core.errors import UsageError
from kerncap.core.replay.launch import QUEUE, Launch, captured_kernel, queue_offset
from kerncap.core.replay.module_variables import check_variables
from kerncap.core.triton.triton_launch import variant_shape
from kerncap.core.units import by


def hsaco_variant_launch(capture: Capture, path: Path) -> Launch:
    """The kernel of the captured symbol in the code object `path`; see variant_launch. Raises UsageError."""
    try:
        code = read_code_object(path)
    except CodeObjectError as error:
        raise UsageError(str(error)) from error
    dispatch = capture.dispatch
    _check_target(capture, code)
    kernel = _kernel(code, path, dispatch.symbol)
    warnings = check_variables(capture, code, path)
    base = captured_kernel(capture)
    if (
        kernel is None or base is None
    ):  # no metadata: the kernel descriptor's sizes are checked by the replayer
        private, group = dispatch.private_segment_size, dispatch.group_segment_size
        return Launch(path, dispatch.symbol, private, group, warnings=warnings)
    shape = variant_shape(capture, path)
    if shape is None:
        _check_workgroup(capture, kernel, path)
    group = kernel.lds_bytes + max(dispatch.group_segment_size - base.lds_bytes, 0)
    if group > capture.device.lds_bytes > 0:
        raise UsageError(
            f"{path}: {dispatch.symbol} needs {group} bytes of LDS a workgroup "
            f"({kernel.lds_bytes} static); {capture.device.name} has {capture.device.lds_bytes}"
        )
    private = kernel.scratch_bytes
    if kernel.dynamic_stack:
        private = max(private, dispatch.private_segment_size)
    kernargs = _kernargs(capture, base, kernel, path)
    if shape is not None:
        group = kernel.lds_bytes + (shape.shared or 0)
        warnings = (*warnings, shape.told(capture))
    return Launch(
        path, dispatch.symbol, private, group, kernargs, queue_offset(kernel), kernel, warnings, shape
    )


def _check_target(capture: Capture, code: CodeObject) -> None:
    if code.relocatable:
        raise UsageError(
            f"{code.source} is an object file that is not linked yet; link it with ld.lld -shared"
        )
    try:
        target = code.target
    except CodeObjectError:
        return  # the loader refuses what it cannot run
    device = Target.parse(capture.device.isa)
    if not target.runs_on(device):
        raise UsageError(
            f"{code.source} is code for {target.offload_arch}; the capture is of {device.offload_arch}"
        )


def _kernel(code: CodeObject, path: Path, symbol: str) -> Kernel | None:
    try:
        names = code.kernel_names
    except CodeObjectError:
        if code.has_kernel(symbol):
            return None
        raise UsageError(f"{path} has no kernel {symbol}") from None
    if symbol not in names:
        some = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        raise UsageError(f"{path} has no kernel {symbol}; it has {some or 'none'}", candidates=names[:50])
    return code.kernel(symbol)


def _check_workgroup(capture: Capture, kernel: Kernel, path: Path) -> None:
    workgroup = capture.dispatch.workgroup
    items = workgroup[0] * max(workgroup[1], 1) * max(workgroup[2], 1)
    if kernel.required_workgroup and kernel.required_workgroup != workgroup:
        raise UsageError(
            f"{path}: {kernel.name} requires workgroups of {by(kernel.required_workgroup)}; "
            f"the captured dispatch has {by(workgroup)}"
        )
    if 0 < kernel.max_workgroup < items:
        raise UsageError(
            f"{path}: {kernel.name} was compiled for workgroups of at most {kernel.max_workgroup} "
            f"work-items; the captured dispatch has {items} (see __launch_bounds__)"
        )


def _kernargs(capture: Capture, base: Kernel, kernel: Kernel, path: Path) -> bytes:
    """The variant's own arguments; empty where the captured ones serve as they are."""
    old, new = base.explicit_arguments, kernel.explicit_arguments
    if difference(new, old):
        named = [
            named_kernel(read_code_object(file), kernel.name).explicit_arguments
            for file in (path, capture.code_path())
        ]
        raise UsageError(
            f"{path}: {kernel.name} takes other arguments than the captured kernel: {difference(*named)}"
        )
    data = capture.kernarg.data
    had = {(a.value_kind, a.offset, a.size) for a in base.arguments if a.is_hidden}
    wanted = [a for a in kernel.arguments if a.is_hidden]
    fits = kernel.kernarg_bytes <= len(data) and all((a.value_kind, a.offset, a.size) in had for a in wanted)
    if fits and queue_offset(kernel) is None:
        return b""
    explicit_end = max((a.offset + a.size for a in new), default=0)
    for argument in wanted:
        if argument.offset + argument.size > kernel.kernarg_bytes:
            raise UsageError(
                f"{path}: the metadata of {kernel.name} is damaged: its {argument.value_kind} is "
                f"{argument.size} bytes at offset {argument.offset} of "
                f"{kernel.kernarg_bytes} bytes of arguments"
            )
    out = bytearray(max(kernel.kernarg_bytes, explicit_end))
    out[:explicit_end] = data[:explicit_end]
    by_kind = {a.value_kind: a for a in base.arguments if a.is_hidden}
    for argument in wanted:
        before = by_kind.get(argument.value_kind)
        if before is not None and before.size == argument.size and before.offset + before.size <= len(data):
            value = data[before.offset : before.offset + before.size]
        else:
            value = _hidden(capture, argument, base, path)
        out[argument.offset : argument.offset + argument.size] = value
    return bytes(out)


def _hidden(capture: Capture, argument: Argument, base: Kernel, path: Path) -> bytes:
    """A hidden argument that the captured kernel did not have, from the dispatch itself."""
    dispatch = capture.dispatch
    kind = argument.value_kind
    values: dict[str, Callable[[], int]] = {
        "hidden_grid_dims": lambda: dispatch.dimensions,
        "hidden_none": lambda: 0,
        "hidden_dynamic_lds_size": lambda: max(dispatch.group_segment_size - base.lds_bytes, 0),
        QUEUE: lambda: 0,  # filled in when the queue is known
    }
    for i, axis in enumerate("xyz"):
        size, group = dispatch.grid[i], max(dispatch.workgroup[i], 1)
        values[f"hidden_block_count_{axis}"] = lambda s=size, g=group: s // g  # type: ignore[misc]
        values[f"hidden_group_size_{axis}"] = lambda group=group: group  # type: ignore[misc]
        values[f"hidden_remainder_{axis}"] = lambda s=size, g=group: s % g  # type: ignore[misc]
        values[f"hidden_global_offset_{axis}"] = lambda: 0
    make = values.get(kind)
    if make is None:
        raise UsageError(
            f"{path}: the kernel uses {kind}, which the captured kernel did not: it has no value in the "
            "capture (printf, assert and device malloc need it; take them out of the variant)"
        )
    try:
        return make().to_bytes(argument.size, "little")
    except OverflowError:
        raise UsageError(
            f"{path}: the metadata of the kernel is damaged: {kind} is {make()}, and has "
            f"{argument.size} bytes"
        ) from None
