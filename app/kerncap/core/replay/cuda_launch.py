"""Whether a cubin's, or PTX's, kernel can take the place of the captured one on an NVIDIA GPU.

What does not fit is a UsageError that says why. The launch itself (grid, block, cluster, dynamic shared
memory, attributes) stays as captured; the replayer asks the driver for what the file does not say.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kerncap.core.capture.records import Capture
from kerncap.core.code.arguments import as_arguments, difference
from kerncap.core.code.codeobject import CodeObjectError, Kernel, Target
from kerncap.core.code.cubin import Cubin
from kerncap.core.code.ptx import Ptx, is_ptx
from kerncap.core.code.reading import read_code_object
from kerncap.core.errors import UsageError, unreadable
from kerncap.core.replay.launch import Launch
from kerncap.core.replay.module_variables import check_variables
from kerncap.core.triton.triton_launch import variant_shape


def cuda_variant_launch(capture: Capture, path: Path) -> Launch:
    """The kernel of the captured symbol in a cubin or PTX file. Raises UsageError where it does not fit."""
    dispatch = capture.dispatch
    if _is_ptx(path):
        _check_name(path, dispatch.symbol, Ptx(path.read_bytes()).kernel_names)
        warning = (
            f"{path.name} is PTX: the driver compiles it for {capture.device.name} when it loads it, by its "
            "own ptxas"
        )
        return _launch(capture, path, None, (warning,))
    try:
        code = read_code_object(path)
    except CodeObjectError as error:
        raise UsageError(str(error)) from error
    if not isinstance(code, Cubin):
        raise UsageError(f"{path} is code for an AMD GPU; the capture is of {capture.device.name}")
    if code.relocatable:
        raise UsageError(
            f"{path} is not linked yet (nvcc -dc, -rdc=true); link it with nvlink, or build it whole"
        )
    if not code.target.runs_on(Target.parse(capture.device.isa)):
        raise UsageError(f"{path} is code for {code.target.arch}; the capture is of {capture.device.name}")
    _check_name(path, dispatch.symbol, code.kernel_names)
    kernel = code.kernel(dispatch.symbol)
    shape = variant_shape(capture, path)
    if shape is None:
        _check_block(capture, kernel, path)
    if code.describes(dispatch.symbol):
        _check_parameters(capture, kernel, path)
    launch = _launch(capture, path, kernel, check_variables(capture, code, path))
    if shape is None:
        return launch
    assert capture.cuda_launch is not None
    # The replayer takes the captured kernel's static shared memory off again.
    group = capture.cuda_launch.static_shared + (shape.shared or 0)
    return replace(launch, group_bytes=group, shape=shape, warnings=(*launch.warnings, shape.told(capture)))


def _launch(capture: Capture, path: Path, kernel: Kernel | None, warnings: tuple[str, ...]) -> Launch:
    dispatch = capture.dispatch
    return Launch(
        path,
        dispatch.symbol,
        dispatch.private_segment_size,
        dispatch.group_segment_size,
        kernel=kernel,
        warnings=warnings,
    )


def _is_ptx(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_ptx(file.read(1 << 16))
    except OSError as error:
        raise unreadable(path, error) from None


def _check_name(path: Path, symbol: str, names: list[str]) -> None:
    if symbol not in names:
        some = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        raise UsageError(f"{path} has no kernel {symbol}; it has {some or 'none'}", candidates=names[:50])


def _check_block(capture: Capture, kernel: Kernel, path: Path) -> None:
    x, y, z = block = capture.dispatch.workgroup
    threads = x * max(y, 1) * max(z, 1)
    required = kernel.required_workgroup
    if required and required != block:
        raise UsageError(
            f"{path}: {kernel.name} requires blocks of {required}; the captured launch has {block}"
        )
    if 0 < kernel.max_workgroup < threads:
        raise UsageError(
            f"{path}: {kernel.name} was compiled for blocks of at most {kernel.max_workgroup} threads; the "
            f"captured launch has {threads} (see __launch_bounds__)"
        )


def _check_parameters(capture: Capture, kernel: Kernel, path: Path) -> None:
    assert capture.cuda_launch is not None
    captured = as_arguments(capture.cuda_launch.parameters)
    differs = difference(kernel.arguments, captured) if captured else ""
    if differs:
        raise UsageError(
            f"{path}: {kernel.name} takes other parameters than the captured kernel: {differs}. Keep them as "
            "they were"
        )
