"""`kerncap inspect`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import xxhash

from kerncap.cli.output import emit_json, json_option, plain_table, say
from kerncap.cli.parameters import PATH
from kerncap.core.capture import manifest
from kerncap.core.capture.arguments_text import COLUMNS, argument_rows, parameters_of
from kerncap.core.code.codeobject import CodeObject, Kernel
from kerncap.core.code.demangle import demangled, shown_names
from kerncap.core.code.dwarf import parameters_by_kernel, with_names
from kerncap.core.code.names import id_text, one_line
from kerncap.core.code.ptx import Ptx
from kerncap.core.code.reading import read_file, read_ptx
from kerncap.core.errors import KerncapError, UsageError
from kerncap.core.files import what_is
from kerncap.core.loop.captures import open_capture
from kerncap.core.program.device_words import words_of
from kerncap.core.units import duration, many, size

SCHEMA = "kerncap-inspect/1"
_PARTS = ("capture.bin", "memory.pre", "memory.post", manifest.NAME)
_STRIPE = re.compile(r"memory\.pre\.\d+")


def _kernel_document(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "demangled": demangled(kernel.name),
        "symbol": kernel.name,  # as profiles and errors have it
        "descriptor": kernel.symbol,
        "vgprs": kernel.vgprs,
        "agprs": kernel.agprs,
        "sgprs": kernel.sgprs,
        "vgpr_spills": kernel.vgpr_spills,
        "sgpr_spills": kernel.sgpr_spills,
        "lds_bytes": kernel.lds_bytes,
        "scratch_bytes": kernel.scratch_bytes,
        "kernarg_bytes": kernel.kernarg_bytes,
        "wavefront": kernel.wavefront,
        "max_workgroup": kernel.max_workgroup,
        "arguments": [
            {"name": a.name, "type": a.type_name, "kind": a.value_kind, "offset": a.offset, "bytes": a.size}
            for a in kernel.explicit_arguments
        ],
    }


def _object_document(code: CodeObject) -> dict[str, Any]:
    document: dict[str, Any] = {
        "offset": code.offset,
        "bytes": len(code.data),
        "hash": id_text(xxhash.xxh64_intdigest(code.data)),
        "compressed": code.compressed,
        "version": code.version,
        "linked": not code.relocatable,
        "target": None,
        "debug_info": code.has_debug_info,
        "kernels": [],
        "variables": [
            {"name": v.name, "demangled": demangled(v.name), "bytes": v.size, "writable": v.writable}
            for v in code.variables
        ],
        "problem": None,
    }
    try:
        document["target"] = code.target.offload_arch
        kernels = list(code.kernels())
        document["kernels"] = [_kernel_document(kernel) for kernel in kernels]
        parameters = parameters_by_kernel(code) if code.has_debug_info else {}
        document["kernels"] = [
            _kernel_document(with_names(kernel, parameters.get(kernel.name, ()))) for kernel in kernels
        ]
    except KerncapError as error:
        document["problem"] = error.message
    return document


def _cell(value: Any) -> str:
    return str(len(value)) if isinstance(value, list) else one_line(str(value))


def _ptx_document(ptx: Ptx) -> dict[str, Any]:
    return {
        "offset": ptx.offset,
        "bytes": len(ptx.data),
        "compressed": ptx.compressed,
        "version": ptx.version,
        "target": ptx.target,
        "kernels": [{"name": name, "demangled": demangled(name)} for name in ptx.kernel_names],
    }


def _show_ptx(document: dict[str, Any], path: Path) -> None:
    packed = ", compressed" if document["compressed"] else ""
    use = "as a variant (--hsaco) it is compiled by the driver"
    if document["offset"]:
        use = f"`cuobjdump -xptx all {path}` writes it as a file"
    say(
        f"PTX at {document['offset']}: {document['target']} and later, version {document['version']}, "
        f"{size(document['bytes'])}{packed}; {use}"
    )
    for name in shown_names([kernel["name"] for kernel in document["kernels"]]):
        say(f"  {one_line(name)}")


def _file(path: Path, as_json: bool) -> int:
    texts = list(map(_ptx_document, read_ptx(path)))  # map keeps none of them beyond its turn
    whole = bool(texts) and texts[0]["offset"] == 0  # the file is PTX
    codes = iter(()) if whole else read_file(path)
    objects = map(_object_document, codes)
    if as_json:
        emit_json({"schema": SCHEMA, "file": str(path), "code_objects": list(objects), "ptx": texts})
        return 0
    for document in objects:
        state = "" if document["linked"] else ", not linked"
        packed = ", compressed" if document["compressed"] else ""
        say(
            f"code object at {document['offset']}: {document['target']}, v{document['version']}, "
            f"{size(document['bytes'])}{packed}{state}, code {document['hash']}"
        )
        if document["problem"]:
            say(f"  {document['problem']}")
        columns = words_of(document["target"]).columns
        names = shown_names([kernel["name"] for kernel in document["kernels"]])
        rows = [
            [*(_cell(kernel[key]) for _, key in columns), one_line(name)]
            for kernel, name in zip(document["kernels"], names, strict=True)
        ]
        if rows:
            table = plain_table([*(heading for heading, _ in columns), "kernel"], rows)
            say("\n".join("  " + line for line in table.splitlines()))
        elif not document["problem"]:
            say("  no kernel")
        for variable in document["variables"]:
            say(f"  variable {one_line(variable['demangled'])}: {many(variable['bytes'], 'byte')}")
    for text in texts:
        _show_ptx(text, path)
    return 0


def _capture(path: Path, as_json: bool) -> int:
    opened = open_capture(path, verify=True)
    document = opened.manifest
    if as_json:
        emit_json({"schema": SCHEMA, "directory": str(path), "capture": document})
        return 0
    kernel, dispatch, device, memory = (document[key] for key in ("kernel", "dispatch", "device", "memory"))
    clock = " (simulated)" if device["simulated"] else ""
    say(f"{one_line(kernel['demangled'])}")
    say(f"  symbol    {one_line(kernel['symbol'])}")
    say(f"  id        {kernel['id']}")
    say(f"  device    {device['arch']}{clock}, {device['isa']}")
    say(f"  dispatch  {dispatch['nth']} of the kernel, {dispatch['nth_overall']} in all")
    if dispatch["duration_ns"] is not None:
        say(f"  time      {duration(dispatch['duration_ns'])}{clock}")
    for label, text in words_of(device["arch"]).launch_lines(document):
        say(f"  {label:<9} {text}")
    repeats = memory.get("repeated_bytes", 0)
    repeated = f"; {size(repeats)} repeat other blocks and are not stored" if repeats else ""
    say(
        f"  memory    {many(memory['regions'], 'region')}, {size(memory['bytes'])} ({memory['mode']}); "
        f"{size(memory['changed_bytes'])} changed{repeated}"
    )
    say(f"  captured  {document['created']}, from {one_line(document['process']['executable'])}")
    source = document.get("source") or {}
    say(f"  source    {source.get('variant') or 'none: ' + str(source.get('reason'))}")
    say(f"  baseline  {(document.get('baseline') or {}).get('verdict')}")
    rows = argument_rows(document, parameters_of(opened.capture))
    if rows:
        say(plain_table(list(COLUMNS), rows, left=(2, 3)))
    return 0


@click.command()
@click.argument("path", type=PATH, metavar="DIR|FILE")
@json_option
def command(path: str, as_json: bool) -> Any:
    """Show a capture (its bytes are checked), or the kernels of a code object, a bundle or a program."""
    where = Path(path)
    if not what_is(where):
        raise UsageError(f"{path} does not exist")
    if (where.name in _PARTS or _STRIPE.fullmatch(where.name)) and (where.parent / _PARTS[0]).is_file():
        raise UsageError(
            f"{path} is a part of a capture: kerncap inspect {shlex.quote(str(where.parent))} shows it"
        )
    return _capture(where, as_json) if where.is_dir() else _file(where, as_json)
