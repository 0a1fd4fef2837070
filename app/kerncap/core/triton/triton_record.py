"""What Triton compiled in the watched program, as app/kerncap/triton_hook/ wrote it down: joined to a capture
by the hash of the code object, and read again.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kerncap.core.code.shape import misshapen
from kerncap.core.errors import DamagedCaptureError
from kerncap.core.files import write_json
from kerncap.triton_hook.elf_text import text_digest

NAME = "triton.json"  # in the capture
SCHEMA = "kerncap-triton/1"
RECORDS = "triton"  # in the session
_PROBLEM = "triton-problem.txt"
_PROBLEM_BYTES = 4000
_FUNCTION = {"source": str, "decorator": str, "file": str, "line": int, "qualname": str}
_MODULE = {"file": str, "future": bool, "imports": dict, "constants": dict, "functions": dict}
_SHAPE = {
    "schema": str,
    "code_object": str,
    "triton": str,
    "triton_root": str,
    "python": str,
    "kernel": str,
    "target": list,
    "environment": dict,
    "reason?": str,
    "module?": str,
    "function?": str,
    "parameters?": [str],
    "signature?": dict,
    "constexprs?": dict,
    "declared?": [str],
    "attributes?": dict,
    "options?": dict,
    "modules?": dict,
    "unresolved?": dict,
    "id?": str,
    "candidates?": [{"constexprs": dict, "options": dict}],
    "tuned?": bool,
    "cached?": bool,
    "missing?": str,
    "defaults?": {"constexprs": dict, "options": dict},
    "tensor_maps?": bool,
}


@dataclass(frozen=True)
class Candidate:
    """A configuration that the autotuner tried, or was about to. Values are Python expressions.

    `times_ms`: what its benchmark gave (median first), empty where it did not run to its end, or none was
    made. `grid`: in programs, what the program's grid function gives for it; None where that is not known.
    `descriptors`: the block shapes of the TMA descriptors that the program made for it, by argument.
    """

    constexprs: dict[str, str]
    options: dict[str, str]
    times_ms: tuple[float, ...] = ()
    chosen: bool = False
    grid: tuple[int, int, int] | None = None
    problem: str | None = None
    descriptors: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """One line for a person."""
        pairs = {**self.constexprs, **self.options}
        return ", ".join(f"{name}={value}" for name, value in pairs.items()) or "the kernel's defaults"


@dataclass(frozen=True)
class TritonRecord:
    """One compiled kernel. Values of constexprs and options are Python expressions."""

    row: dict[str, Any] = field(repr=False)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.row[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def reason(self) -> str | None:
        """Why it has no source; None where it has."""
        reason = self.row.get("reason")
        return None if reason is None else str(reason)

    @property
    def cached(self) -> bool:
        """Whether the autotuner's choice came from a cache: the program timed no candidate."""
        return bool(self.row.get("cached"))

    @property
    def candidates(self) -> list[Candidate]:
        """The autotuner's, empty where the program did not tune this kernel, nor had a choice in a cache."""
        found = []
        rows = self.row.get("candidates", ())
        for row, constexprs, options in zip(
            rows, self._whole("constexprs", rows), self._whole("options", rows), strict=True
        ):
            times = tuple(float(t) for t in row.get("times_ms") or () if t is not None)
            grid = row.get("grid")
            found.append(
                Candidate(
                    constexprs,
                    options,
                    times,
                    bool(row.get("chosen")),
                    (int(grid[0]), int(grid[1]), int(grid[2])) if grid else None,
                    row.get("problem"),
                    {k: tuple(int(n) for n in v) for k, v in (row.get("descriptors") or {}).items()},
                )
            )
        return found

    def _whole(self, group: str, rows: Any) -> list[dict[str, str]]:
        """What each of the candidates is, where some name more than others: the default of what it does not
        name, not what was captured.
        """
        defaults = self.row.get("defaults", {}).get(group)
        if defaults is None:
            return [dict(row[group]) for row in rows]
        known = {**self.row[group], **defaults} if group == "options" else defaults
        named = dict.fromkeys(name for row in rows for name in row[group])
        return [
            {name: values[name] for name in named if name in values}
            for values in ({**known, **row[group]} for row in rows)
        ]

    def is_pinned(self, candidate: Candidate) -> bool:
        """Whether the candidate is the configuration that was captured."""
        return all(
            self.row[place].get(name) == value
            for place, values in (("constexprs", candidate.constexprs), ("options", candidate.options))
            for name, value in values.items()
            if name in self.row[place]
        )


_SPOILED = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


def keep(session: Path, capture: Path) -> None:
    """Puts the record of the captured code object beside the capture, with its autotuner's candidates.

    Where there is none of it and the hook failed: what it said. Nothing where no Triton was used.
    """
    folder = session / RECORDS
    if not folder.is_dir():
        return
    try:
        if _keep(folder, capture):
            return
        problems = [path.read_text("utf-8", "replace") for path in folder.glob("problem-*.txt")]
    except _SPOILED as error:  # the program's to write, and to spoil
        problems = [f"{type(error).__name__}: {error}"]
    if problems:
        text = "\n".join(problem[-_PROBLEM_BYTES:] for problem in problems)
        (capture / _PROBLEM).write_text(text, "utf-8")


def _keep(folder: Path, capture: Path) -> bool:
    """Whether there is a record of the captured code object, which then is beside it."""
    for code in sorted((capture / "code").iterdir()) if (capture / "code").is_dir() else ():
        row = _record_of(folder, code.read_bytes())
        if row is not None:
            _add_tuning(folder, row)
            problem = _problem(row)
            if problem is not None:
                raise ValueError(f"the record of the kernel cannot be used: {problem}")
            write_json(capture / NAME, row)
            return True
    return False


def _record_of(folder: Path, code: bytes) -> dict[str, Any] | None:
    """By the hash of the code object, else by that of its instructions."""
    found = folder / f"{hashlib.sha256(code).hexdigest()}.json"
    if found.is_file():
        row: dict[str, Any] = json.loads(found.read_text("utf-8"))
        return row
    text = text_digest(code)
    for path in sorted(folder.glob("*.json")) if text else ():
        with suppress(*_SPOILED):  # another's does not matter
            row = json.loads(path.read_text("utf-8"))
            if row.get("text") == text and row["kernel"].encode() in code:
                return row
    return None


def _add_tuning(folder: Path, row: dict[str, Any]) -> None:
    """The newest tuning of the kernel that has its configuration."""
    newest: tuple[int, dict[str, Any]] | None = None
    for path in folder.glob("tuning-*.json"):
        with suppress(*_SPOILED):
            tuning = json.loads(path.read_text("utf-8"))
            if (tuning["module"], tuning["function"]) != (row.get("module"), row.get("function")):
                continue
            more = {key: tuning[key] for key in ("cached", "missing") if key in tuning}
            record = TritonRecord(
                {**row, "candidates": tuning["candidates"], "tuned": tuning["finished"], **more}
            )
            at = path.stat().st_mtime_ns
            if any(record.is_pinned(c) for c in record.candidates) and (newest is None or at > newest[0]):
                newest = at, record.row
    if newest is not None:
        row.update(newest[1])


def _problem(row: Any) -> str | None:
    """What keeps it from being a record that can be used. May also raise any of _SPOILED."""
    problem = misshapen(row, _SHAPE)
    if problem is None and "reason" not in row:
        missing = [
            name.rstrip("?") for name in _SHAPE if name.rstrip("?") not in row and name[:-1] in _NEEDED
        ]
        problem = f"{missing[0]} is missing" if missing else None
        for module in row.get("modules", {}).values():
            problem = problem or misshapen(module, _MODULE)
            for function in module["functions"].values():
                problem = problem or misshapen(function, _FUNCTION)
    if problem is None and row["schema"] != SCHEMA:
        problem = f"schema {row['schema']!r}; this kerncap reads {SCHEMA!r}"
    if problem is None:
        _ = TritonRecord(row).candidates  # raises where one of them cannot be used
    return problem


def read(capture: Path) -> TritonRecord | None:
    """The record beside a capture; None where there is none. Raises DamagedCaptureError."""
    path = capture / NAME
    if not path.is_file():
        return None
    try:
        row = json.loads(path.read_text("utf-8"))
        problem = _problem(row)
    except _SPOILED as error:
        problem = f"it cannot be read: {error!r}"
    if problem is not None:
        raise DamagedCaptureError(f"{path}: {problem}.", file=str(path))
    return TritonRecord(row)


_NEEDED = frozenset({"module", "function", "parameters", "signature", "constexprs", "options", "modules"})


def problem_of(capture: Path) -> str | None:
    """What the hook said of its own failure, where that left the capture without a record."""
    try:
        lines = (capture / _PROBLEM).read_text("utf-8", "replace").strip().splitlines()
    except OSError:
        return None
    return lines[-1] if lines else None


def copy_modules(record: TritonRecord) -> dict[str, str]:
    """Where each module of the program has its copy in the reproducer, by the module's name."""
    copies = {}
    for name in record.modules:
        if name == record.module:
            copies[name] = "kernel_variant.py"
        else:
            copies[name] = os.path.join("deps", name.replace(".", "__") + ".py")
    return copies
