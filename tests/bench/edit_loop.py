"""Save to verdict: the demonstration kernel's edit loop, and where its time goes."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from pathlib import Path

from bench.report import Report, median, spread
from kerncap.core.build.compile_file import VARIANT
from kerncap.core.extract.extract import extract
from kerncap.core.loop.events import Event, Finished, Watching
from kerncap.core.loop.session import open_loop
from kerncap.demo import build
from kerncap.demo.edits import HOIST

_SAVES = 6


def measure(report: Report) -> None:
    """Adds the figures of the edit loop."""
    with tempfile.TemporaryDirectory() as folder:
        demo = build(Path(folder) / "demo", "sim:gfx942")
        reproducer = Path(folder) / "mul_mat_vec_q"
        extract(
            "mul_mat_vec_q",
            demo.command,
            device="sim:gfx942",
            source_dir=demo.source_dir,
            output=reproducer,
            stdout=subprocess.DEVNULL,
        )
        _loop(report, reproducer)


def _loop(report: Report, reproducer: Path) -> None:
    finished: list[Finished] = []
    ready, ended = threading.Event(), threading.Event()

    def on_event(event: Event) -> None:
        if isinstance(event, Watching):
            ready.set()
        if isinstance(event, Finished):
            finished.append(event)
            ended.set()

    variant = reproducer / VARIANT
    totals: list[float] = []
    with open_loop(reproducer, on_event, device="sim:gfx942") as loop:
        thread = threading.Thread(target=loop.run, daemon=True)
        thread.start()
        assert ready.wait(120)
        assert ended.wait(120)  # the source as it stands is the first attempt
        finished.clear()
        for save in range(_SAVES):
            ended.clear()
            started = time.perf_counter()
            if save % 2 == 0:
                HOIST.apply(variant)
            else:
                HOIST.undo(variant)
            assert ended.wait(120)
            totals.append(time.perf_counter() - started)
        loop.stop()
        thread.join(60)
    for event in finished:
        assert event.iteration is not None
        assert event.iteration.document["outcome"] == "passed", event.iteration.document
    steps: dict[str, list[float]] = {}
    for event in finished:
        assert event.iteration is not None
        for name, seconds in event.iteration.document["seconds"].items():
            steps.setdefault(name, []).append(float(seconds))
    report.add("edit loop, save to verdict", median(totals), "s", at_most=1.5, note=spread(totals))
    for name in ("build", "replay", "validate"):
        report.add(f"edit loop, of it {name}", median(steps[name]), "s", note=spread(steps[name]))
    noticed = median(totals) - median(steps["total"])
    report.add("edit loop, of it until the save is noticed", noticed, "s")
