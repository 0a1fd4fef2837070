"""Figures of a benchmark run: printed as a table, written as JSON."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One measured number. `met` is None where there is no aim."""

    name: str
    value: float
    unit: str
    aim: str = ""
    met: bool | None = None
    note: str = ""


class Report:
    """Collects figures and prints each as it comes."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []

    def add(
        self,
        name: str,
        value: float,
        unit: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        note: str = "",
    ) -> None:
        """Adds a figure; `at_least` or `at_most` is its aim."""
        aim, met = "", None
        if at_least is not None:
            aim, met = f">= {at_least:g}", value >= at_least
        elif at_most is not None:
            aim, met = f"<= {at_most:g}", value <= at_most
        figure = Figure(name, round(value, 6), unit, aim, met, note)
        self.figures.append(figure)
        verdict = {True: "met", False: "MISSED", None: ""}[met]
        print(f"{name:<46} {value:>12.4g} {unit:<24} {aim:<10} {verdict:<7} {note}", flush=True)

    def write(self, path: Path) -> None:
        """Writes the figures as a JSON list, beside and renamed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(json.dumps([asdict(figure) for figure in self.figures], indent=2) + "\n")
        beside.replace(path)


def spread(samples: Sequence[float]) -> str:
    """Number, least and greatest of the samples, for a note."""
    return f"n={len(samples)}, {min(samples):.4g} .. {max(samples):.4g}"


def median(samples: Sequence[float]) -> float:
    return float(statistics.median(samples))
