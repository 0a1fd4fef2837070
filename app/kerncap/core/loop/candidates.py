"""A captured Triton kernel under each configuration that the program's autotuner tried: how fast, and how far
its result is from what the program's own run wrote.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kerncap.core.build.compile_file import PRISTINE, CompileFile
from kerncap.core.build.toolchain import CompileError
from kerncap.core.build.triton_compile import TritonCompile
from kerncap.core.capture.reading import read_capture
from kerncap.core.device.devices import Device
from kerncap.core.errors import KerncapError, UsageError
from kerncap.core.judge.validate import Validator
from kerncap.core.judge.verdict import FAIL, ValidateResult
from kerncap.core.replay.replay import replay
from kerncap.core.replay.replayer import Replayer
from kerncap.core.scratch import scratch
from kerncap.core.triton import triton_record
from kerncap.core.triton.triton_descriptors import signature_under
from kerncap.core.triton.triton_launch import programs
from kerncap.core.triton.triton_record import Candidate, TritonRecord
from kerncap.core.units import by, duration

SCHEMA = "kerncap-candidates/1"


@dataclass(frozen=True)
class CandidateResult:
    """One configuration. `program_ms`: the median of the program's own benchmark, None where it has none.

    `changed_share`: of the bytes that the captured kernel wrote, by elements; `max_abs` and `max_rel` over
    them. `problem`: why it was not run, or not to its end; then there is no verdict.
    """

    configuration: str
    grid: tuple[int, int, int] | None
    captured: bool
    chosen: bool
    program_ms: float | None
    median_ns: float | None = None
    verdict: str | None = None
    changed_share: float | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    problem: str | None = None


@dataclass(frozen=True)
class CandidatesResult:
    """All of them, in the autotuner's order. `tuned`: whether it had finished when the capture was made.
    `cached`: its choice came from a cache; `program_ms`, if any, is of the run that filled it.

    `failure`: where not one of them could be tried, with the exit code of what stopped them.
    """

    kernel: str
    device: str
    simulated: bool
    tuned: bool
    rows: tuple[CandidateResult, ...]
    cached: bool = False
    edited: tuple[str, ...] = ()  # sources that are not as they were extracted: the rows are of the edit
    schema: str = SCHEMA
    failure: KerncapError | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The document of `kerncap replay --candidates --json`."""
        document = {
            "schema": self.schema,
            **{k: v for k, v in asdict(self).items() if k not in ("schema", "rows", "failure")},
        }
        document["candidates"] = [asdict(row) for row in self.rows]
        return document


@dataclass(frozen=True)
class Source:
    """What candidates are compiled of. `edited`: its files that are not as they were extracted."""

    digest: str
    edited: tuple[str, ...]

    @classmethod
    def of(cls, directory: Path, plan: CompileFile | None = None) -> Source:
        """As a reproducer has it now."""
        plan = plan or CompileFile.read(directory)
        digest, edited = hashlib.sha256(), []
        for name in dict.fromkeys([plan.variant, *plan.files.values()]):
            content = _content(directory / name)
            digest.update(repr((name, content)).encode())
            if content != _content(directory / PRISTINE / name):
                edited.append(name)
        return cls(digest.hexdigest(), tuple(edited))


def edited_text(edited: Sequence[str]) -> str:
    """What somebody who compares the rows has to know; empty where nothing was edited."""
    if not edited:
        return ""
    verb = "was" if len(edited) == 1 else "were"
    return (
        f"{', '.join(edited)} {verb} edited since the extraction: all rows are of the edit, none of the "
        "captured kernel."
    )


def cached_text(timed: bool) -> str:
    """What somebody who compares the rows has to know of a choice from a cache. `timed`: it has times."""
    times = "the times are of the run that filled it" if timed else "it timed none of them"
    return f"The program had its choice from a cache: {times}."


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


HEADINGS = ("configuration", "programs", "in the program", "replayed", "verdict", "changed", "max abs", "")
LEFT = (0, 4, 7)  # columns of words


def cells(row: CandidateResult) -> list[str]:
    """A line of a table with HEADINGS."""
    marks = [word for word, is_so in (("captured", row.captured), ("chosen", row.chosen)) if is_so]
    return [
        row.configuration,
        by(row.grid) if row.grid else "-",
        f"{row.program_ms:.3f} ms" if row.program_ms is not None else "-",
        duration(row.median_ns) if row.median_ns is not None else "-",
        row.verdict or "-",
        f"{row.changed_share:.2%}" if row.changed_share is not None else "-",
        f"{row.max_abs:.3g}" if row.max_abs is not None else "-",
        ", ".join(marks),
    ]


def as_recorded(directory: Path) -> list[CandidateResult]:
    """What is known of the candidates before any is run. Raises UsageError where there are none."""
    record, found = known_candidates(directory)
    grid = programs(read_capture(directory))
    return [_row(record, candidate, grid) for candidate in found]


def known_candidates(directory: Path) -> tuple[TritonRecord, list[Candidate]]:
    """Of a reproducer. Raises UsageError where its kernel is none of Triton's, or was not tuned."""
    capture = read_capture(directory)
    record = triton_record.read(capture.path)
    if record is None:
        raise UsageError(f"{directory}: the captured kernel is none that kerncap saw Triton compile")
    found = record.candidates
    missing = record.row.get("missing")
    if missing:
        raise UsageError(
            f"{directory}: what this kernel was chosen among is not known: {missing}; change pinned() in "
            "kernel_variant.py to try another configuration"
        )
    if not found:
        raise UsageError(
            f"{directory}: the program did not autotune this kernel while it was watched; change pinned() in "
            "kernel_variant.py to try another configuration"
        )
    return record, found


def candidates(
    directory: str | os.PathLike[str],
    *,
    device: str | Device | None = None,
    cache: str = "warm",
    iterations: int | None = None,
    time_limit_s: float = 10.0,
    limit_s: float = 60.0,
    on_source: Callable[[Source], None] = lambda _: None,
    on_result: Callable[[CandidateResult], None] = lambda _: None,
    cancel: threading.Event | None = None,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> CandidatesResult:
    """Compiles the reproducer's kernel_variant.py with each candidate, replays and validates it. All are
    compiled of its source as it is at the beginning, which `on_source` is told of.

    `time_limit_s` bounds the samples of each; no more of them are begun once `cancel` is set. `turn` gives
    the device to what is timed and compared, where others use it as well. Raises
    UsageError, DeviceError, DamagedCaptureError; what a candidate's compile or run raises is in its row.
    """
    directory = Path(os.path.abspath(directory))
    record, found = known_candidates(directory)
    plan = CompileFile.read(directory)
    rows = []
    codes = set()  # exit codes of what stopped them
    capture = read_capture(directory)
    with Replayer(capture, device, limit_s=limit_s) as replayer, scratch("candidates") as place:
        validator = Validator(capture, replayer=replayer)
        copy = _copied(directory, Path(place) / "source")
        source = Source.of(copy, plan)
        on_source(source)
        with turn():
            validator.baseline()
        for number, candidate in enumerate(found):
            if cancel is not None and cancel.is_set():
                break
            made = Path(place) / f"candidate-{number}{Path(plan.output).suffix}"
            row = _row(record, candidate, programs(capture))
            signature, problem = signature_under(record, candidate)
            problem = _why_not(candidate, row) or problem
            if problem is None:
                try:
                    _build(copy, plan, candidate, signature, made, cancel)
                    with turn():
                        timing = replay(
                            directory, made, iterations, cache, time_limit_s=time_limit_s, replayer=replayer
                        ).timing
                        row = _judged(row, validator.validate(made), timing.median_ns)
                except KerncapError as error:
                    lines = error.output.strip().splitlines() if isinstance(error, CompileError) else []
                    problem = f"{error.message}{f' ({lines[-1]})' if lines else ''}"
                    problem = problem.replace(str(copy), str(directory))
                    codes.add(UsageError.exit_code if isinstance(error, CompileError) else error.exit_code)
            if problem is not None:
                row = CandidateResult(**{**asdict(row), "problem": problem})
            rows.append(row)
            on_result(row)
        return CandidatesResult(
            capture.dispatch.demangled,
            replayer.device.name,
            replayer.simulated,
            bool(record.row.get("tuned")),
            tuple(rows),
            record.cached,
            source.edited,
            failure=_failure(directory, rows, codes),
        )


def _failure(directory: Path, rows: list[CandidateResult], codes: set[int]) -> KerncapError | None:
    """What ends the command where nothing was tried; some that failed are in their rows alone."""
    if not rows or any(row.verdict is not None for row in rows):
        return None
    error = UsageError(
        f"{directory}: none of the {len(rows)} configurations could be tried; {rows[0].configuration}: "
        f"{rows[0].problem}"
    )
    if len(codes) == 1:
        (error.exit_code,) = codes
    return error


def _copied(directory: Path, to: Path) -> Path:
    """What a compile reads of a reproducer, in a folder of its own: Python files and the capture."""

    def unread(folder: str, names: list[str]) -> list[str]:
        skipped = {"capture"} if Path(folder) == directory else set()
        return [
            name
            for name in names
            if name in skipped
            or name.startswith(".")
            or not (name.endswith(".py") or Path(folder, name).is_dir())
        ]

    try:
        shutil.copytree(directory, to, ignore=unread, ignore_dangling_symlinks=True)
    except OSError as error:
        raise UsageError(f"{directory}: its source could not be copied: {error}") from error
    (to / "capture").symlink_to(directory / "capture")
    return to


def _row(record: TritonRecord, candidate: Candidate, grid: tuple[int, int, int]) -> CandidateResult:
    captured = record.is_pinned(candidate)
    return CandidateResult(
        candidate.text,
        candidate.grid or (grid if captured else None),
        captured,
        candidate.chosen,
        candidate.times_ms[0] if candidate.times_ms else None,
    )


def _why_not(candidate: Candidate, row: CandidateResult) -> str | None:
    if candidate.problem is not None:
        return f"its configuration cannot be written down: {candidate.problem}"
    if row.grid is None:
        return "the grid that the program would launch it with is not known"
    return None


def _build(
    directory: Path,
    plan: CompileFile,
    candidate: Candidate,
    signature: dict[str, str],
    made: Path,
    cancel: threading.Event | None,
) -> None:
    override: dict[str, Any] = {
        "constexprs": candidate.constexprs,
        "options": candidate.options,
        "signature": signature,
    }
    if candidate.grid is not None:
        override["grid"] = list(candidate.grid)
    TritonCompile(directory, plan.command, override, cancel=cancel).build(made)


def _judged(row: CandidateResult, result: ValidateResult, median_ns: float) -> CandidateResult:
    changed = sum(int(region["mismatch_bytes"]) for region in result.regions)
    numbers = {
        key: max((float(region[key]) for region in result.regions if region[key] is not None), default=0.0)
        for key in ("max_abs", "max_rel")
    }
    compared = result.compared_bytes
    problem = result.reason if result.verdict == FAIL and not result.regions else None
    return CandidateResult(
        **{
            **asdict(row),
            **numbers,
            "median_ns": median_ns,
            "verdict": result.verdict,
            "changed_share": changed / compared if compared else None,
            "problem": problem,
        }
    )
