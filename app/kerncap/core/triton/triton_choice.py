"""Which of the kernels of one name an autotuner chose, by what the program's own process wrote down."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kerncap.core.code.telling import Described
from kerncap.core.errors import DamagedCaptureError
from kerncap.core.triton import triton_record
from kerncap.core.triton.triton_record import RECORDS, Candidate, TritonRecord
from kerncap.core.units import many


def _documents(session: Path, pattern: str) -> list[tuple[int, dict[str, Any]]]:
    """(time of writing, content) of the files that can be read: the program's to write, and to spoil."""
    found = []
    for path in (session / RECORDS).glob(pattern):
        try:
            row = json.loads(path.read_text("utf-8"))
            if isinstance(row, dict):
                found.append((path.stat().st_mtime_ns, row))
        except (OSError, ValueError, RecursionError):
            continue
    return sorted(found, key=lambda pair: pair[0])


def _records(session: Path) -> dict[str, TritonRecord]:
    """By the kernel's id."""
    found = {}
    for _, row in _documents(session, "*.json"):
        if isinstance(row.get("id"), str) and isinstance(row.get("constexprs"), dict):
            found[row["id"]] = TritonRecord(row)
    return found


def _described(row: Mapping[str, Any]) -> Described:
    """May raise AttributeError or TypeError: the program's to write, and to spoil."""
    declared, options = row.get("declared") or (), dict(row.get("options") or {})
    shown = {name: text for name, text in row["constexprs"].items() if name in declared}
    shown |= {name: options.pop(name) for name in ("num_warps", "num_stages") if name in options}
    text = ", ".join(f"{name}={value}" for name, value in shown.items())
    types = {name: str(kind).strip("'\"") for name, kind in (row.get("signature") or {}).items()}
    runtime = {name: kind for name, kind in types.items() if kind != "constexpr"}
    return Described(text, {name: str(value) for name, value in {**shown, **options}.items()}, runtime)


class Configurations:
    """What Triton compiled the kernels of a session with. A record is read once: it does not change."""

    def __init__(self, session: Path) -> None:
        self._folder = session / RECORDS
        self._read: set[str] = set()
        self._known: dict[str, Described] = {}
        self._kernels = 0

    def of(self, kernels: Sequence[object]) -> Mapping[str, Described]:
        """By kernel id. Looked for again only where there are more kernels than before."""
        if len(kernels) != self._kernels:
            self._kernels = len(kernels)
            self._look()
        return self._known

    def _look(self) -> None:
        known = dict(self._known)  # whoever has the earlier one may be in another thread
        for path in self._folder.glob("*.json"):
            if path.name in self._read or path.name.startswith("tuning-"):
                continue
            self._read.add(path.name)
            try:
                row = json.loads(path.read_text("utf-8"))
                if isinstance(row["id"], str) and isinstance(row.get("constexprs"), dict):
                    known[row["id"]] = _described(row)
            except (OSError, ValueError, RecursionError, LookupError, AttributeError, TypeError):
                continue
        self._known = known


def configurations(session: Path) -> Mapping[str, Described]:
    """By kernel id: what Triton compiled it with."""
    return Configurations(session).of((None,))


def chosen_kernel(session: Path, ids: Iterable[str]) -> str | None:
    """Of kernels of one name: the one that the autotuner chose last; None where that is not written down."""
    wanted = set(ids)
    records = {kernel: record for kernel, record in _records(session).items() if kernel in wanted}
    for _, tuning in reversed(_documents(session, "tuning-*.json")):
        if not tuning.get("finished"):
            continue
        for kernel, record in records.items():
            same = (tuning.get("module"), tuning.get("function")) == (
                record.row.get("module"),
                record.row.get("function"),
            )
            if same and any(c.chosen and record.is_pinned(c) for c in _candidates(record, tuning)):
                return kernel
    return None


def _candidates(record: TritonRecord, tuning: dict[str, Any]) -> list[Candidate]:
    try:
        return TritonRecord({**record.row, "candidates": tuning.get("candidates") or ()}).candidates
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return []


def note(capture: Path, pattern: str, kernel_id: str, nth: int, ran_on: bool = False) -> str | None:
    """What somebody who extracts a tuned kernel has to know of the choice. `ran_on`: the program went on
    after the capture, so that the choice may have come later.
    """
    try:
        record = triton_record.read(capture)
        found = record.candidates if record is not None else []
    except (DamagedCaptureError, KeyError, TypeError, ValueError, AttributeError, IndexError):
        return None
    if record is None or len(found) < 2:
        return None
    pinned = next((c for c in found if record.is_pinned(c)), None)
    if pinned is None:
        return None
    if len(pattern) >= 6 and kernel_id.startswith(pattern.lower()):
        return _note_of_id(record, pinned, found, nth, ran_on)
    if not pinned.chosen:
        return None
    tried = "had its choice from a cache, among" if record.cached else "tried"
    return (
        f"the autotuner {tried} {many(len(found), 'configuration')} of {pattern}; captured is the one that "
        f"it chose, {pinned.text}, in dispatch {nth} of that kernel"
    )


def _note_of_id(
    record: TritonRecord, pinned: Candidate, found: list[Candidate], nth: int, ran_on: bool
) -> str | None:
    """An id counts the launches by which the autotuner timed the kernel, and is of one configuration."""
    name = record.kernel
    if not record.row.get("tuned"):
        return (
            f"dispatch {nth} was captured before kerncap saw the autotuner choose among the {len(found)} "
            f"configurations of {name}: it may be a launch that only timed {pinned.text}. --dispatch N takes "
            f"a later one; the plain name, {name}, takes the first after the choice"
        )
    if not pinned.chosen:
        best = next((c.text for c in found if c.chosen), "another one")
        return (
            f"captured is {pinned.text}; of the {len(found)} configurations of {name} the autotuner chose "
            f"{best}. The plain name, {name}, takes that one"
        )
    if ran_on and not record.cached:
        return (
            f"dispatch {nth} may be one by which the autotuner timed {pinned.text}, which it chose: an id "
            f"counts those too. --dispatch N takes a later one; the plain name, {name}, takes the first "
            "after the choice"
        )
    return None
