"""What a capture holds, for a person: from its manifest and records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from kerncap.core.capture.arguments_text import COLUMNS, argument_rows, parameters_of
from kerncap.core.code.names import one_line
from kerncap.core.errors import KerncapError
from kerncap.core.program.device_words import words_of
from kerncap.core.units import duration, many
from kerncap.tui.extract.progress import size_text

if TYPE_CHECKING:
    from kerncap.core.loop.captures import Listed

_MOST_REGIONS = 30


def capture_text(one: Listed) -> Content:
    """Kernel, device, memory, source and regions; where it is damaged, why."""
    from kerncap.core.loop.captures import open_capture

    if one.problem:
        return Content.assemble(("This capture cannot be used. ", "bold $text-error"), one.problem)
    try:
        opened = open_capture(one.directory)
        arguments = argument_rows(opened.manifest, parameters_of(opened.capture))
    except KerncapError as error:
        return Content.assemble(("This capture cannot be used. ", "bold $text-error"), error.message)
    capture, manifest = opened.capture, opened.manifest
    dispatch = capture.dispatch
    memory = manifest.get("memory", {})
    source = manifest.get("source") or {}
    baseline = manifest.get("baseline") or {}
    clock = " (simulated)" if one.simulated else ""
    took = manifest["dispatch"]["duration_ns"]
    lines = [
        ("kernel", one_line(one.demangled) or one_line(one.kernel)),
        ("symbol", one_line(one.symbol)),
        ("id", one.id),
        ("device", one.arch + clock),
        ("dispatch", f"number {dispatch.nth_of_kernel} of the kernel"),
        *([("time", duration(took) + clock)] if took is not None else []),
        *words_of(one.arch).launch_lines(manifest, " x "),
        (
            "memory",
            f"{many(memory.get('regions', 0), 'region')}, {size_text(one.bytes)} "
            f"({size_text(one.bytes_on_disk)} on disk), "
            f"{size_text(memory.get('changed_bytes', 0))} changed by the dispatch",
        ),
        ("source", source.get("variant") or f"none: {source.get('reason', '-')}"),
        ("baseline", str(baseline.get("verdict", "-"))),
        ("program", " ".join(map(str, manifest.get("command") or ["-"]))),
        ("created", one.created),
    ]
    parts: list[str | tuple[str, str]] = []
    for label, text in lines:
        parts += [(f"{label:<10}", "$accent"), f"{text}\n"]
    if arguments:
        parts.append(("\narguments\n", "$accent"))
        columns = list(zip(COLUMNS, *arguments, strict=True))
        widths = [max(map(len, column)) for column in columns[:-1]]
        for row in zip(*columns, strict=True):
            cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
            parts.append("  " + "  ".join([*cells, row[-1]]) + "\n")
    parts.append(("\nregions\n", "$accent"))
    for region in capture.regions[:_MOST_REGIONS]:
        kept = "" if region.saved else f"  not saved: {region.reason}"
        parts.append(f"  0x{region.address:012x}  {size_text(region.bytes):>10}{kept}\n")
    if len(capture.regions) > _MOST_REGIONS:
        parts.append(f"  and {len(capture.regions) - _MOST_REGIONS} more\n")
    return Content.assemble(*parts)
