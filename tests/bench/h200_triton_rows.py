"""The section "triton" of h200.py: each program of h200_triton.py, from its profile to its rebuilt kernel."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parent / "h200_triton.py"
CASES = (  # title, case, what its kernel's name begins with, whether the program tunes it
    ("flash attention, autotuned", "attention", "attention_kernel", True),
    ("matmul, autotuned", "matmul", "matmul_kernel", True),
    ("Inductor MLP", "mlp", "triton_", True),
    ("mixture of 32 experts", "moe", "moe_kernel", False),
    ("softmax", "softmax", "softmax_kernel", False),
    ("layer norm", "layer_norm", "layer_norm_kernel", False),
)


@dataclass
class Row:
    name: str
    value: str
    good: bool | None
    note: str


@dataclass
class Found:
    """What is known of one program, as far as it came."""

    title: str
    rows: list[Row] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    since: float = field(default_factory=time.perf_counter)

    def add(self, what: str, value: str, good: bool | None, note: str) -> None:
        self.rows.append(Row(f"{self.title}: {what}", value, good, note.replace("\n", " | ")[:1500]))

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[None]:
        """A failure is a row, and ends what comes after it."""
        started = time.perf_counter()
        try:
            yield
        except Exception as error:
            said = getattr(error, "message", str(error))
            output = str(getattr(error, "output", ""))[-600:]
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.add(
                what,
                type(error).__name__,
                False,
                f"{said[-700:]} {output} ({Path(where.filename).name}:{where.lineno})",
            )
            raise Ended from error
        finally:
            self.stages.append(f"{what} {time.perf_counter() - started:.1f}")


class Ended(Exception):
    """A program's later steps cannot be made."""


def _source_lines(out: Path) -> str:
    """What the reproducer's README says of its source, for the row of one that has none."""
    try:
        lines = [line for line in (out / "README.md").read_text("utf-8", "replace").splitlines() if line]
    except OSError as error:
        return str(error)
    at = next((i for i, line in enumerate(lines) if line.lower().startswith("## source")), len(lines) - 5)
    kept = " | ".join(lines[at : at + 6])
    problem = out / "capture" / "triton-problem.txt"
    more = problem.read_text("utf-8", "replace")[-500:] if problem.is_file() else ""
    return f"README: {kept} {more}"


def _extract(found: Found, case: str, name: str, out: Path) -> Any:
    """By the kernel's plain name: of a tuned one that means what was chosen. The second launch of that."""
    from kerncap.core.extract.extract import extract
    from kerncap.core.program.profile import profile

    command = [sys.executable, str(PROGRAM), case]
    with found.step("profile"):
        report = profile(command, device="cuda", stdout=2, timeout=100)
        kernels = sorted((k for k in report.kernels if k.symbol.startswith(name)), key=lambda k: -k.calls)
        if not kernels:
            raise RuntimeError(f"not launched: {[k.name[:50] for k in report.kernels[:6]]} {report.warnings}")
        kinds = ", ".join(
            f"{k.kind} {k.id[:24]} {k.calls} calls, {k.mean_ns / 1e3:.1f} us" for k in kernels[:5]
        )
        found.add("profile", kernels[0].kind, kernels[0].kind in ("triton", "inductor"), kinds)
    with found.step("extract"):
        # Inductor keeps a choice in a cache, where its configurations are no longer tried.
        anew = {**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
        made = extract(
            kernels[0].symbol,
            command,
            device="cuda",
            dispatch=2,
            output=out,
            stdout=2,
            timeout=100,
            environment=anew,
        )
        # Inductor makes other code in each run without its caches: the note says what it chose.
        anew_made = kernels[0].kind == "inductor" and any("chose" in warning for warning in made.warnings)
        good = made.id in {k.id for k in kernels} or anew_made
        found.add("by its plain name", made.id[:6], good, "; ".join(made.warnings))
    return next((k for k in kernels if k.id == made.id), kernels[0]), made


def _one(title: str, case: str, name: str, tuned: bool, memory: Path) -> Found:
    found = Found(title)
    with (
        tempfile.TemporaryDirectory(prefix="kerncap-h200-", dir=memory) as place,
        contextlib.suppress(Ended),
    ):
        out = Path(place) / "out"
        kernel, made = _extract(found, case, name, out)
        _replayed(found, out, kernel, made)
        source = made.source
        if source.variant is None:
            found.add("source", "none", False, f"{source.reason} {source.notes} {_source_lines(out)}")
            return found
        good = source.rebuilt == "identical"
        note = f"{source.language} {source.files} {'; '.join(source.notes)}"
        found.add(
            "rebuilt, unchanged", str(source.rebuilt), good, note if good else note + _source_lines(out)
        )
        _rebuilt(found, out)
        if tuned:
            _candidates(found, out)
    return found


def _replayed(found: Found, out: Path, kernel: Any, made: Any) -> None:
    from kerncap.core.judge.validate import validate
    from kerncap.core.replay.replay import replay

    with found.step("replay"):
        judged = validate(out, mode="strict", device="cuda")
        timed = replay(out, device="cuda", iterations=50, time_limit_s=3.0)
        worst = max((float(r["max_abs"]) for r in judged.regions if r["max_abs"] is not None), default=0.0)
        note = (
            f"max_error {worst}; baseline {made.baseline.get('verdict')}; "
            f"{judged.compared_bytes / 1e6:.1f} MB "
            f"compared of {made.bytes / 1e6:.1f}; in the program {kernel.mean_ns / 1e3:.2f} us, replayed "
            f"{timed.timing.median_ns / 1e3:.2f} us; {judged.reason}"
        )
        found.add("replay against the program", judged.verdict, judged.verdict == "IDENTICAL", note)


def _rebuilt(found: Found, out: Path) -> None:
    from kerncap.core.build.recompile import recompile
    from kerncap.core.judge.validate import validate

    with found.step("recompile"):
        built = recompile(out)
        captured = next((out / "capture" / "code").iterdir())
        same = captured.read_bytes() == built.object.read_bytes()
        judged = validate(out, built.object, device="cuda")
        types = sorted({f"{r['dtype']} ({r['dtype_source']})" for r in judged.regions})
        note = (
            f"{built.object.name}, {'' if same else 'not '}the captured bytes; "
            f"compile {sum(built.seconds.values()):.1f} s; {types} {judged.reason}"
        )
        found.add("recompile and validate", judged.verdict, judged.verdict == "IDENTICAL", note)


def _configuration(row: Any) -> str:
    replayed = "-" if row.median_ns is None else f"{row.median_ns / 1e6:.4f}"
    changed = "-" if row.changed_share is None else f"{row.changed_share:.2%} by at most {row.max_abs:.3g}"
    program = "-" if row.program_ms is None else f"{row.program_ms:.4f}"
    return f"{row.configuration}: {program} ms, replayed {replayed}: {row.verdict or row.problem}, {changed}"


def _candidates(found: Found, out: Path) -> None:
    """The fastest configuration against the second-fastest, and against the fastest with another result."""
    from kerncap.core.loop.candidates import candidates

    with found.step("candidates"):
        result = candidates(out, device="cuda", time_limit_s=2.0)
        ran = sorted((r for r in result.rows if r.program_ms is not None), key=lambda r: r.program_ms)
        first, others = ran[0], ran[1:]
        ran_all = all(r.verdict is not None for r in result.rows)
        found.add(
            "configurations",
            f"{len(result.rows)}",
            ran_all and first.verdict == "IDENTICAL",
            f"tuned {result.tuned}; " + "; ".join(map(_configuration, result.rows)),
        )
        for what, row in (
            ("second-fastest configuration", others[0] if others else None),
            ("fastest one with another result", next((r for r in others if r.changed_share), None)),
        ):
            value = (
                "none" if row is None else "-" if row.changed_share is None else f"{row.changed_share:.2%}"
            )
            note = "" if row is None else f"{_configuration(row)}; fastest {_configuration(first)}"
            found.add(f"{what} changes", value, None, note)


def triton(bench: Any) -> None:
    """All programs, three at a time; their rows as they come."""
    with ThreadPoolExecutor(3) as pool:
        work = [pool.submit(_one, *case, bench.memory) for case in CASES]
        for done in as_completed(work):
            found = done.result()
            for row in found.rows:
                bench.row(row.name, row.value, good=row.good, note=row.note)
            stages = ", ".join(found.stages)
            bench.row(f"{found.title}: in all", time.perf_counter() - found.since, "s", note=stages)
