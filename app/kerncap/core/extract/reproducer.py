"""Writing the project around a capture: the source to edit, its headers, the overlay, the Makefile, the
README.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kerncap.core.build.compile_command import GUESSED, CompileCommand
from kerncap.core.build.compile_file import (
    NAME,
    OUTPUT,
    OUTPUT_CUDA,
    OVERLAY,
    PRISTINE,
    VARIANT,
    VARIANT_CUDA,
    CompileFile,
    layout_of,
    part_of_kerncap,
)
from kerncap.core.build.nvcc_command import is_nvcc
from kerncap.core.build.nvcc_compile import resolve_nvcc
from kerncap.core.build.recompile import recompile
from kerncap.core.build.toolchain import CompileError, Compiler, resolve_compiler
from kerncap.core.capture import manifest
from kerncap.core.capture.reading import read_capture
from kerncap.core.code.codeobject import CodeObject
from kerncap.core.code.cubin import Cubin
from kerncap.core.code.reading import machine_code, read_code_object
from kerncap.core.errors import KerncapError, UsageError
from kerncap.core.extract.reproducer_info import CaptureFacts, ReproducerInfo
from kerncap.core.extract.templates import render
from kerncap.core.extract.triton_project import write_triton
from kerncap.core.files import write_atomically
from kerncap.core.program.device_words import words_of
from kerncap.core.scratch import scratch
from kerncap.core.triton import triton_record
from kerncap.core.units import many, size

_SYSTEM = ("/usr", "/lib", "/lib64", "/opt/rocm", "/opt/amdgpu", "/opt/nvidia", "/opt/cuda")


def write_reproducer(
    capture: Path,
    out: Path,
    *,
    source_dir: Path | None = None,
    defines: Sequence[str] = (),
    language: str = "auto",
    progress: Callable[[str], None] = lambda _: None,
) -> ReproducerInfo:
    """`write_project` for a capture whose records and manifest are on disk already; `out` is where `capture`
    is in.

    `language` is one of kerncap.source.LANGUAGES, or "auto", or "none" to look for no source.
    """
    read = read_capture(capture)
    # Not manifest.read: it takes complete captures only, and this one becomes complete after its project is
    # written.
    document = json.loads((capture / manifest.NAME).read_text("utf-8", "surrogateescape"))
    dispatch, memory = document["dispatch"], document["memory"]
    lines = [
        ("dispatch", f"{dispatch['nth']} of this kernel, {dispatch['nth_overall']} of all"),
        *words_of(read.device.name).launch_lines(document, " x "),
        (
            "memory",
            f"{size(memory['bytes'])} in {many(memory['regions'], 'region')} ({memory['mode']}); "
            f"{size(memory['changed_bytes'])} changed",
        ),
        ("captured", f"{document['created']}, kernel id {document['kernel']['id']}"),
        ("working directory", read.process.directory),
    ]
    facts = CaptureFacts(
        symbol=read.dispatch.symbol,
        kernel=document["kernel"]["demangled"],
        code_object=read.code_path(),
        command=tuple(document.get("command") or (read.process.executable,)),
        device=document.get("device_name") or read.device.name,
        simulated=read.device.simulated,
        facts=tuple(lines),
    )
    return write_project(
        out,
        facts,
        source_dirs=[source_dir] if source_dir is not None else [],
        defines=defines,
        language=None if language == "auto" else language,
        working_directory=Path(read.process.directory) if read.process.directory else None,
        executable=Path(read.process.executable) if read.process.executable else None,
        progress=progress,
    )


def write_project(
    out: Path,
    facts: CaptureFacts,
    *,
    source_dirs: Sequence[Path] = (),
    defines: Sequence[str] = (),
    language: str | None = None,
    working_directory: Path | None = None,
    executable: Path | None = None,
    timeout_s: float = 300.0,
    progress: Callable[[str], None] = lambda _: None,
) -> ReproducerInfo:
    """Find the source of a captured kernel and write the project into `out`, which holds `capture/` already.

    `out` may be renamed afterwards: nothing in it knows its own path. Without source the project is written
    all the same and says why. Raises UsageError for a source directory that cannot be read or a language that
    is not known.
    """
    from kerncap.source import (
        SourceRequest,
        find_source,
    )  # source builds on core; only this function needs it back

    for folder in source_dirs:
        if not os.path.isdir(folder) or not os.access(folder, os.R_OK | os.X_OK):
            raise UsageError(f"--source-dir {folder} is no directory that can be read.")
    captured = read_code_object(facts.code_object)
    if language == "none":
        info = ReproducerInfo(
            "none",
            None,
            reason="The extraction was told not to look for source (--language none).",
            notes=_not_looked_at(source_dirs),
            source_dirs=_used(source_dirs, ()),
        )
        _write_texts(out, "hsaco", facts, info, captured)
        return info
    if not captured.describes(facts.symbol):
        info = ReproducerInfo(
            "unknown",
            None,
            reason=f"The code object does not describe the arguments of {facts.symbol}.",
            notes=_not_looked_at(source_dirs),
            source_dirs=_used(source_dirs, ()),
        )
        _write_texts(out, "hsaco", facts, info, captured)
        return info
    record = triton_record.read(out / "capture")
    if record is not None and language is None:
        info = write_triton(out, facts, captured, record, progress)
        _write_texts(out, "triton" if info.variant else "hsaco", facts, info, captured)
        return info
    unseen = triton_record.problem_of(out / "capture")
    trouble = (f"Triton ran, and what it compiled could not all be written down: {unseen}",) if unseen else ()
    finding = find_source(
        SourceRequest(
            symbol=facts.symbol,
            code_object=facts.code_object,
            target=captured.target,
            source_dirs=tuple(Path(os.path.abspath(d)) for d in source_dirs),
            defines=tuple(defines),
            working_directory=working_directory,
            executable=executable,
            timeout_s=timeout_s,
            progress=progress,
        ),
        language,
    )
    if finding.command is None:
        info = ReproducerInfo(
            finding.language,
            None,
            reason=finding.reason,
            notes=(*finding.notes, *trouble, *_unused(source_dirs, ())),
            source_dirs=_used(source_dirs, ()),
        )
        _write_texts(out, "hsaco", facts, info, captured)
        return info
    plan = _copy_sources(out, facts, captured, finding.command, finding.dependencies, source_dirs)
    definition = None
    if finding.definition:
        copy = plan.files.get(finding.definition.file) or plan.files.get(
            Path(os.path.realpath(finding.definition.file))
        )
        definition = f"{copy or finding.definition.file}:{finding.definition.line}"
    progress("rebuilding the unchanged kernel")
    rebuilt, remarks = _rebuild(out, plan, captured)
    info = ReproducerInfo(
        finding.language,
        plan.variant,
        tuple(plan.editable),
        None,
        rebuilt,
        definition,
        (*finding.notes, *_unused(source_dirs, plan.files), *remarks),
        _used(source_dirs, plan.files),
    )
    _write_texts(out, "cuda" if plan.cuda else "hip", facts, info, captured)
    return info


def _used(source_dirs: Sequence[Path], files: Iterable[Path]) -> tuple[tuple[str, bool], ...]:
    """Each directory that was named, and whether one of the kernel's files is in it."""
    real = [os.path.realpath(path) for path in files]
    return tuple(
        (str(named), any(path.startswith(os.path.join(os.path.realpath(named), "")) for path in real))
        for named in source_dirs
    )


def _unused(source_dirs: Sequence[Path], files: Iterable[Path]) -> tuple[str, ...]:
    """What to say of directories that were named in vain."""
    files = list(files)
    what = (
        f"does not hold the source of this kernel; that is {files[0]}"
        if files
        else "was searched, and holds no source of this kernel that compiles here"
    )
    return tuple(f"--source-dir {named} {what}." for named, used in _used(source_dirs, files) if not used)


def _not_looked_at(source_dirs: Sequence[Path]) -> tuple[str, ...]:
    return tuple(f"--source-dir {named} was not looked at." for named in source_dirs)


def _copy_sources(
    out: Path,
    facts: CaptureFacts,
    captured: CodeObject,
    command: CompileCommand,
    dependencies: Iterable[Path],
    source_dirs: Sequence[Path],
) -> CompileFile:
    local = [p for p in dependencies if p != command.file and _is_local(p, command, source_dirs)]
    own = [p.parent for p in local if part_of_kerncap(p) is None]
    shared = Path(os.path.commonpath([command.file.parent, *own]))
    files: dict[Path, str] = {}
    cuda = captured.target.triple.startswith("nvptx")
    variant = VARIANT_CUDA if cuda else VARIANT
    for path in [command.file, *local]:
        copy = variant if path == command.file else str(Path("deps") / _place_of(path, shared))
        for target in (out / copy, out / PRISTINE / copy):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        files[path] = copy
        # The compiler may reach the same file by its real name, where a directory above it is a link.
        files.setdefault(Path(os.path.realpath(path)), copy)
        files.setdefault(Path(os.path.realpath(path.parent)) / path.name, copy)
    root = _tree_root(command.file, shared, source_dirs)
    plan = CompileFile(
        facts.symbol, captured.target, command, files, variant, root, layout_of(captured.kernel(facts.symbol))
    )
    plan.write(out)
    if not cuda:
        write_atomically(out / OVERLAY, overlay_text(files).encode("utf-8", "surrogateescape"))
    return plan


def _place_of(header: Path, shared: Path) -> Path:
    """Where the copy of a header goes below deps/: as it lies below the program's own files."""
    given = part_of_kerncap(header)
    return Path("kerncap-hip", given) if given else header.relative_to(shared)


def _is_local(path: Path, command: CompileCommand, source_dirs: Sequence[Path]) -> bool:
    """Whether a file is the program's own: copied and editable. The compiler's and the system's headers are
    not.
    """
    try:
        found = resolve_nvcc(command) if is_nvcc(command) else _hip_compiler(command)
        compiler = Path(os.path.realpath(found.words[0])).parent
    except KerncapError:
        compiler = Path("/usr/bin")
    home = compiler.parent if compiler.name == "bin" else compiler
    if home not in (Path("/"), Path("/usr"), Path("/usr/local")) and path.is_relative_to(home):
        return False
    if any(path.is_relative_to(os.path.abspath(d)) for d in [*source_dirs, command.file.parent]):
        return True
    return not any(path.is_relative_to(s) or str(path).startswith(f"{s}-") for s in _SYSTEM)


def _hip_compiler(command: CompileCommand) -> Compiler:
    return resolve_compiler(command.arguments, command.directory, command.origin != GUESSED)


def _tree_root(unit: Path, shared: Path, source_dirs: Sequence[Path]) -> Path:
    """What a patch counts paths from: the repository, else what the user named, else the files' common
    directory.
    """
    for parent in unit.parents:
        if os.path.exists(parent / ".git"):
            return parent
    named = [Path(os.path.abspath(d)) for d in source_dirs]
    return next((d for d in named if unit.is_relative_to(d)), shared)


def overlay_text(files: dict[Path, str]) -> str:
    """A clang VFS overlay (YAML, written as JSON) that shows the copies under the original names.

    Names in messages stay the originals': a copy's own directory must not be where its quoted includes are
    looked for.
    """
    folders: dict[str, list[dict[str, str]]] = {}
    for path, copy in files.items():
        entry = {"name": path.name, "type": "file", "external-contents": copy}
        folders.setdefault(str(path.parent), []).append(entry)
    document = {
        "version": 0,
        "case-sensitive": "true",
        "overlay-relative": "true",
        "use-external-names": "false",
        "roots": [{"name": d, "type": "directory", "contents": rows} for d, rows in folders.items()],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _rebuild(out: Path, plan: CompileFile, captured: CodeObject) -> tuple[str | None, list[str]]:
    """Compile the unchanged copy once: whether it works, and gives the captured code."""
    with scratch("rebuild") as place:
        try:
            made = recompile(out, Path(place) / "unchanged", timeout_s=180.0)
            same = machine_code(read_code_object(made.object), plan.symbol) == machine_code(
                captured, plan.symbol
            )
        except KerncapError as error:
            first = error.output.strip().splitlines()[:1] if isinstance(error, CompileError) else []
            detail = f" ({first[0]})" if first else ""
            return None, [
                "The unchanged kernel does not rebuild here, so an edit will not either: "
                f"{error.message}{detail}"
            ]
    if same:
        return "identical", []
    return "differs", [
        "The rebuilt, unchanged kernel is not the captured one byte for byte: it was built by another "
        "compiler, with other "
        "options, or from another version of the source. Compare an edit with the rebuilt kernel before "
        "crediting it."
    ]


def _write_texts(
    out: Path, kind: str, facts: CaptureFacts, info: ReproducerInfo, captured: CodeObject
) -> None:
    described = captured.describes(facts.symbol)
    arch = captured.target.offload_arch if described else facts.device
    compiled = words_of(arch).compiled(captured.kernel(facts.symbol)) if described else []
    values = {
        "facts": facts,
        "info": info,
        "command": shlex.join(facts.command),
        "arch": arch,
        "lines": [*facts.facts, *compiled],
        "python": sys.executable,
        "compile_file": NAME,
        "made": OUTPUT_CUDA if isinstance(captured, Cubin) else OUTPUT,
        "other": "other.cubin" if isinstance(captured, Cubin) else "other.hsaco",
    }
    for name in ("README.md", "Makefile"):
        text = render(f"{kind}/{name}.j2", **values)
        write_atomically(out / name, text.encode("utf-8", "surrogateescape"))
