"""`manifest.json`: what people and scripts read about a capture, made from its records.

It repeats nothing that replay needs: `capture.bin` stays the only source for that. It adds where the capture
came from (the command, the source), and the hashes that tie the other files to it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kerncap.core.capture.records import (
    CHECKSUM_BLOCK,
    Capture,
    CudaLaunch,
    DispatchFlags,
    Region,
    RegionFlags,
)
from kerncap.core.code.arguments import named_kernel
from kerncap.core.code.codeobject import Argument, Kernel
from kerncap.core.code.names import base_name, id_text
from kerncap.core.code.reading import read_code_object
from kerncap.core.code.shape import misshapen
from kerncap.core.errors import DAMAGED, DamagedCaptureError, KerncapError, unreadable
from kerncap.core.files import write_json

SCHEMA = "kerncap-capture/1"
_FAMILY, _, _VERSION = SCHEMA.rpartition("/")
NAME = "manifest.json"
DIGEST = "sha256"
COMPLETE = "complete"
PARTIAL = "partial"

_NOTHING = type(None)
_SHAPE = {
    "created": str,
    "kernel": {"id": str, "name": str, "demangled": str, "symbol": str, "vgprs?": int, "sgprs?": int},
    "dispatch": {
        "nth": int,
        "nth_overall": int,
        "grid": [int],
        "block": [int],
        "lds_bytes": int,
        "duration_ns": (int, _NOTHING),
    },
    "arguments": [
        {
            "name": str,
            "kind": str,
            "offset": int,
            "bytes": int,
            "value": str,
            "pointer?": {"address": str, "region": int, "offset": int},
        }
    ],
    "device": {"arch": str, "isa": str, "simulated": bool},
    "process": {"executable": str},
    "memory": {"mode": str, "regions": int, "bytes": int, "changed_bytes": int, "repeated_bytes?": int},
    "files": dict,
    "command?": (list, _NOTHING),
    "source?": (dict, _NOTHING),
    "baseline?": (dict, _NOTHING),
    "cuda?": {
        "grid_blocks": [int],
        "block": [int],
        "cluster": (list, _NOTHING),
        "static_shared_bytes": int,
        "dynamic_shared_bytes": int,
        "cooperative": bool,
        "registers": int,
        "local_bytes": int,
    },
}


def _digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the document, without its own digest, whatever the order and the blanks."""
    rest = {key: value for key, value in document.items() if key != DIGEST}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def file_digest(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file, as the manifest stores them."""
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _argument(argument: Argument, kernarg: bytes, capture: Capture) -> dict[str, Any]:
    raw = kernarg[argument.offset : argument.offset + argument.size]
    document: dict[str, Any] = {
        "name": argument.name,
        "type": argument.type_name,
        "kind": argument.value_kind,
        "offset": argument.offset,
        "bytes": argument.size,
        "value": raw.hex(),
    }
    if argument.size == 8:
        value = int.from_bytes(raw, "little")
        region = capture.region_at(value)
        if region is not None:
            document["pointer"] = {
                "address": f"0x{value:x}",
                "region": region.id,
                "offset": value - region.address,
                "bytes_to_end": region.end - value,
            }
    return document


def _region(region: Region) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": region.id,
        "kind": region.kind.name.lower(),
        "address": f"0x{region.address:x}",
        "bytes": region.bytes,
        "saved": region.saved,
        "reachable": bool(region.flags & RegionFlags.REACHABLE),
        "written": bool(region.flags & RegionFlags.WRITTEN),
    }
    if region.reason:
        document["reason"] = region.reason
    return document


def _cuda(launch: CudaLaunch) -> dict[str, Any]:
    """How a kernel was launched on a CUDA device. Grid and cluster are in blocks, sizes in bytes."""
    return {
        "grid_blocks": list(launch.grid),
        "block": list(launch.block),
        "cluster": list(launch.cluster) if any(launch.cluster) else None,
        "static_shared_bytes": launch.static_shared,
        "dynamic_shared_bytes": launch.dynamic_shared,
        "max_dynamic_shared_bytes": launch.max_dynamic_shared,
        "cooperative": launch.cooperative,
        "registers": launch.registers,
        "local_bytes": launch.local_bytes,
        "attributes": [key for key, _ in launch.attributes],
    }


def kernel_of(capture: Capture) -> Kernel | None:
    """The captured kernel's metadata, or None where its code object carries none (said in the manifest).

    Names and types of arguments that are not in it come from debug information.
    """
    try:
        return named_kernel(read_code_object(capture.code_path()), capture.dispatch.symbol)
    except KerncapError:
        return None


def build(capture: Capture, **more: Any) -> dict[str, Any]:
    """The manifest of a capture. `more` adds keys, such as command, options, source, baseline."""
    dispatch, device, process = capture.dispatch, capture.device, capture.process
    kernel = kernel_of(capture)
    saved = [region for region in capture.regions if region.saved]
    duration = dispatch.end_ns - dispatch.start_ns if 0 < dispatch.start_ns < dispatch.end_ns else None
    files = {"capture.bin": file_digest(capture.path / "capture.bin")}
    for code in capture.code_objects:
        files[f"code/{code.file_name}"] = file_digest(capture.code_path(code))
    for memory in capture.memory_files:
        for number in range(memory.files):
            files[memory.name(number)] = {
                "bytes": memory.length(number),
                "checksums": "xxh64 of each 1048576 bytes, in capture.bin",
            }
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "state": PARTIAL,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(process.realtime_ns / 1e9 or None)),
        "kernel": {
            "id": id_text(dispatch.kernel_id),
            "name": base_name(dispatch.demangled or dispatch.symbol),
            "demangled": dispatch.demangled or dispatch.symbol,
            "symbol": dispatch.symbol,
        },
        "dispatch": {
            "nth": dispatch.nth_of_kernel,
            "nth_overall": dispatch.nth_overall,
            "grid": list(dispatch.grid),
            "block": list(dispatch.workgroup),
            "lds_bytes": dispatch.group_segment_size,
            "scratch_bytes": dispatch.private_segment_size,
            "duration_ns": duration,
            "flags": [flag.name.lower() for flag in DispatchFlags if flag & dispatch.flags and flag.name],
            "kernarg": {"address": f"0x{capture.kernarg.address:x}", "bytes": len(capture.kernarg.data)},
        },
        "arguments": [
            _argument(argument, capture.kernarg.data, capture)
            for argument in (kernel.explicit_arguments if kernel else ())
        ],
        "device": {
            "arch": device.name,
            "isa": device.isa,
            "product": device.product,
            "compute_units": device.compute_units,
            "wavefront": device.wavefront,
            "lds_bytes": device.lds_bytes,
            "simulated": device.simulated,
        },
        "process": {
            "pid": process.pid,
            "executable": process.executable,
            "directory": process.directory,
            "runtime": process.runtime,
        },
        "memory": {
            "mode": "all" if dispatch.memory_mode else "reachable",
            "regions": len(saved),
            "bytes": capture.pre_bytes,
            "repeated_bytes": sum(map(len, capture.repeats.values())) * CHECKSUM_BLOCK,
            "reachable_bytes": dispatch.reachable_bytes,
            "allocated_bytes": dispatch.allocated_bytes,
            "changed_bytes": capture.changed_bytes(),
            "not_saved": len(capture.regions) - len(saved),
        },
        "regions": [_region(region) for region in capture.regions],
        "variables": [
            {"name": v.name, "address": f"0x{v.address:x}", "bytes": v.bytes, "code_object": v.code_object}
            for v in capture.variables
        ],
        "code_objects": [
            {"id": c.id, "file": f"code/{c.file_name}", "bytes": c.content_bytes, "uri": c.uri}
            for c in capture.code_objects
        ],
        "files": files,
    }
    if kernel is None:
        document["note"] = "the code object carries no metadata for this kernel: its arguments are not listed"
    else:
        document["kernel"].update(
            vgprs=kernel.vgprs, agprs=kernel.agprs, sgprs=kernel.sgprs, static_lds_bytes=kernel.lds_bytes
        )
    if capture.cuda_launch is not None:
        document["cuda"] = _cuda(capture.cuda_launch)
    document.update(more)
    return document


def write(directory: Path, document: Mapping[str, Any]) -> None:
    """Writes `directory`/manifest.json, whole or not at all."""
    write_json(directory / NAME, {**document, DIGEST: _digest(document)})


def read(directory: Path) -> dict[str, Any]:
    """The manifest of the capture in `directory` (which holds capture.bin).

    Raises DamagedCaptureError where it is missing, unfinished, no manifest, or of a newer schema.
    """
    path = directory / NAME
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "no file")
        text = path.read_bytes()
    except OSError as error:
        after = "; a capture without a manifest was never completed, extract it again"
        raise unreadable(path, error, DamagedCaptureError, after, file=str(path), offset=0) from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        offset = getattr(error, "pos", 0)
        raise DamagedCaptureError(
            f"{path}: not JSON at offset {offset}: {error}{DAMAGED}",
            file=str(path),
            offset=offset,
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    family, _, version = str(schema).rpartition("/")
    if family != _FAMILY or not (version.isascii() and version.isdigit() and len(version) < 10):
        raise DamagedCaptureError(f"{path}: schema {schema!r} is none of kerncap's", file=str(path), offset=0)
    if int(version) > int(_VERSION):
        raise DamagedCaptureError(
            f"{path}: schema {schema} is newer than this kerncap reads ({SCHEMA}); use a newer kerncap",
            file=str(path),
            offset=0,
        )
    if document.get("state") != COMPLETE:
        raise DamagedCaptureError(
            f"{path}: the capture was never completed; extract it again", file=str(path), offset=0
        )
    if document.get(DIGEST) != _digest(document):
        raise DamagedCaptureError(
            f"{path}: it was altered since it was written (its {DIGEST} does not agree); extract it again",
            file=str(path),
            offset=0,
        )
    problem = misshapen(document, _SHAPE)
    if problem:
        raise DamagedCaptureError(f"{path}: {problem}{DAMAGED}", file=str(path), offset=0)
    return dict(document)
