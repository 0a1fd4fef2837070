"""The project around a capture of a kernel that Triton compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kerncap.core.build.compile_command import CompileCommand
from kerncap.core.build.compile_file import PRISTINE, VARIANT_TRITON, CompileFile, layout_of
from kerncap.core.build.recompile import recompile
from kerncap.core.build.toolchain import CompileError
from kerncap.core.capture.reading import read_capture
from kerncap.core.code.codeobject import CodeObject
from kerncap.core.code.reading import machine_code, read_code_object
from kerncap.core.errors import KerncapError
from kerncap.core.extract.reproducer_info import CaptureFacts, ReproducerInfo
from kerncap.core.scratch import scratch
from kerncap.core.triton.triton_descriptors import captured_note
from kerncap.core.triton.triton_launch import programs
from kerncap.core.triton.triton_record import TritonRecord


def write_triton(
    out: Path,
    facts: CaptureFacts,
    captured: CodeObject,
    record: TritonRecord,
    progress: Callable[[str], None] = lambda _: None,
) -> ReproducerInfo:
    """kernel_variant.py and what belongs to it into `out`; an info without a variant where the source was not
    seen, or cannot be kept, with the reason.
    """
    from kerncap.source.triton.variant import NoVariantError, write_variant  # source builds on core

    language = "inductor" if facts.symbol.startswith("triton_") else "triton"
    if record.reason is not None:
        return ReproducerInfo(
            language, None, reason=f"Triton {record.triton} compiled this kernel, but {record.reason}."
        )
    grid = programs(read_capture(out / "capture"))
    try:
        made = write_variant(record, grid)
    except NoVariantError as error:
        return ReproducerInfo(language, None, reason=f"{error.message}.")
    for copy, text in made.texts.items():
        for target in (out / copy, out / PRISTINE / copy):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8", "surrogateescape")
    unit = next(original for original, copy in made.originals.items() if copy == VARIANT_TRITON)
    command = CompileCommand(
        Path(record.triton_root), (record.python, "-m", "triton"), unit, None, f"Triton {record.triton}"
    )
    plan = CompileFile(
        facts.symbol,
        captured.target,
        command,
        made.originals,
        VARIANT_TRITON,
        unit.parent,
        layout_of(captured.kernel(facts.symbol)),
    )
    plan.write(out)
    progress("rebuilding the unchanged kernel")
    rebuilt, notes = _rebuild(out, plan, captured, facts.code_object)
    descriptors = captured_note(record)
    missing = record.row.get("missing")
    if missing:
        notes.insert(0, f"The configurations that it was chosen among are not known: {missing}.")
    if descriptors is not None:
        notes.insert(0, descriptors)
    notes = [
        f"{name} of the program is not in it: it was {why}." for name, why in record.unresolved.items()
    ] + notes
    return ReproducerInfo(
        language,
        VARIANT_TRITON,
        tuple(made.texts),
        None,
        rebuilt,
        f"{VARIANT_TRITON}:{made.line}",
        tuple(notes),
    )


def _rebuild(out: Path, plan: CompileFile, captured: CodeObject, code: Path) -> tuple[str | None, list[str]]:
    """Compiles the unchanged kernel once: whether that gives the captured code object, and what differs."""
    with scratch("rebuild") as place:
        try:
            made = recompile(out, Path(place) / "unchanged.hsaco", timeout_s=300.0).object
        except KerncapError as error:
            lines = error.output.strip().splitlines() if isinstance(error, CompileError) else []
            detail = f" ({lines[-1]})" if lines else ""
            return None, [
                "The unchanged kernel does not rebuild here, so an edit will not either: "
                f"{error.message}{detail}"
            ]
        if made.read_bytes() == code.read_bytes():
            return "identical", []
        new = read_code_object(made)
        if machine_code(new, plan.symbol) == machine_code(captured, plan.symbol):
            return "identical", [
                "The rebuilt, unchanged kernel has the captured instructions, byte for byte; its code object "
                f"differs in {_differing(new, captured)}."
            ]
    return "differs", [
        "The rebuilt, unchanged kernel is not the captured one: another Triton, or another compiler in it, "
        "made it. Compare an edit with the rebuilt kernel before crediting it."
    ]


def _differing(one: CodeObject, other: CodeObject) -> str:
    """The names of the sections that are not equal."""
    names = dict.fromkeys([*(s.name for s in one.elf.sections), *(s.name for s in other.elf.sections)])
    found = []
    for name in names:
        a, b = one.elf.section(name), other.elf.section(name)
        if a is None or b is None or bytes(one.elf.content(a)) != bytes(other.elf.content(b)):
            found.append(name or "headers")
    return ", ".join(found) or "its headers"
