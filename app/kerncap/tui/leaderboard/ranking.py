"""Which kernels are shown, and in which order: pure functions over the figures of one moment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from kerncap.core.code.names import base_name

if TYPE_CHECKING:
    from kerncap.core.program.live import KernelStats

# Sort key -> (value, largest first).
SORTS: dict[str, tuple[Callable[[KernelStats], Any], bool]] = {
    "total": (attrgetter("total_ns"), True),
    "calls": (attrgetter("calls"), True),
    "mean": (lambda k: k.mean_ns, True),
    "min": (attrgetter("min_ns"), True),
    "max": (attrgetter("max_ns"), True),
    "name": (lambda k: base_name(k.name).lower(), False),
    "kind": (attrgetter("kind"), False),
    "recent": (attrgetter("last_seen_ns"), True),
}


@dataclass(frozen=True, slots=True)
class Sort:
    """By what, and whether the other way round than the key's own direction."""

    key: str = "total"
    reverse: bool = False

    def clicked(self, key: str) -> Sort:
        """The sort after its key was pressed: pressed again, it turns round."""
        return Sort(key, not self.reverse if key == self.key else False)

    @property
    def descending(self) -> bool:
        """Whether the largest is first."""
        return SORTS[self.key][1] != self.reverse


@dataclass(frozen=True, slots=True)
class Filter:
    """A regular expression on names, symbols, kinds and ids; with `!` before it, what does not match.

    Case counts only where the expression has an upper-case letter.
    """

    text: str = ""
    pattern: re.Pattern[str] | None = None
    inverse: bool = False

    @classmethod
    def parse(cls, text: str) -> Filter:
        """Raises ValueError with a sentence where the expression is none."""
        inverse = text.startswith("!")
        body = text[1:] if inverse else text
        if not body:
            return cls(text)
        try:
            pattern = re.compile(body, 0 if re.search(r"[A-Z]", body) else re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"{body!r} is no regular expression: {error}") from None
        return cls(text, pattern, inverse)

    def fits(self, kernel: KernelStats) -> bool:
        """Whether the kernel is shown."""
        if self.pattern is None:
            return True
        found = any(
            self.pattern.search(text) for text in (kernel.name, kernel.symbol, kernel.kind, kernel.id)
        )
        return found != self.inverse


def name_order(kernels: Sequence[KernelStats]) -> dict[str, None]:
    """The ids by name and id, a set that keeps its order: what decides between equal ones."""
    return dict.fromkeys(ident for _, ident in sorted((k.name, k.id) for k in kernels))


def ordered(
    kernels: Sequence[KernelStats], sort: Sort, names: Mapping[str, None] | None = None
) -> list[KernelStats]:
    """The kernels in order; equal ones by name and id, so that rows do not jump about.

    `names` is `name_order` of these kernels or of more, for whoever orders often.
    """
    value, _ = SORTS[sort.key]
    here = {k.id: k for k in kernels}
    by_name = [here[ident] for ident in names or () if ident in here]
    if len(by_name) != len(here):  # no order, or one of other kernels
        by_name = [here[ident] for ident in name_order(kernels)]
    return sorted(by_name, key=value, reverse=sort.descending)


def keep_order(kernels: Sequence[KernelStats], before: Sequence[str]) -> list[KernelStats]:
    """The kernels in the order of `before`; those that are new come last, as given."""
    place = {ident: index for index, ident in enumerate(before)}
    last = len(place)
    return sorted(kernels, key=lambda k: place.get(k.id, last))


class Trends:
    """Device time of each kernel in each of the last seconds."""

    LENGTH = 24
    STEP_S = 1.0

    def __init__(self) -> None:
        self._totals: dict[str, int] = {}
        self._steps: dict[str, list[int]] = {}
        self._due = 0.0
        self._count = 0

    def add(self, kernels: Sequence[KernelStats], elapsed_s: float) -> None:
        """Takes the figures of a moment; counts them once a step."""
        if elapsed_s < self._due:
            return
        skipped = int((elapsed_s - self._due) / self.STEP_S) if self._count else 0
        self._due = elapsed_s - (elapsed_s % self.STEP_S) + self.STEP_S
        self._count += 1
        for kernel in kernels:
            steps = self._steps.setdefault(kernel.id, [])
            # A busy machine may miss steps; what came in them is spread over them.
            # An estimated total goes back where the mean falls.
            delta = max(0, kernel.total_ns - self._totals.get(kernel.id, 0))
            share = delta // (skipped + 1)
            steps.extend([share] * min(skipped, self.LENGTH))
            steps.append(delta - share * skipped)
            del steps[: -self.LENGTH]
            self._totals[kernel.id] = kernel.total_ns

    def of(self, ident: str) -> Sequence[int]:
        """The last steps of a kernel, oldest first, in ns."""
        return self._steps.get(ident, ())


def share(kernel: KernelStats, total_ns: int, total_calls: int) -> float:
    """Its part of all device time, 0 to 1; of all calls where nothing is timed."""
    if total_ns:
        return kernel.total_ns / total_ns
    return kernel.calls / total_calls if total_calls else 0.0


def slowest_bins(kernel: KernelStats) -> list[tuple[int, int]]:
    """Its duration histogram without empty ends: (log2 of ns, count)."""
    counts = kernel.histogram.tolist()
    used = [index for index, count in enumerate(counts) if count]
    if not used:
        return []
    return [(index, counts[index]) for index in range(used[0], used[-1] + 1)]


def export_rows(kernels: Sequence[Mapping[str, Any]]) -> str:
    """Kernels of a profile document as CSV."""
    import csv
    import io

    names = [name for name in (kernels[0] if kernels else {"id": 0}) if name not in ("grid", "block")]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*names, "grid", "block"])
    for kernel in kernels:
        sizes = ["x".join(map(str, kernel[name])) for name in ("grid", "block")]
        writer.writerow([*(kernel[name] for name in names), *sizes])
    return out.getvalue()
