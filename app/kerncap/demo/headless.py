"""The whole loop on the demonstration program, printed step by step."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kerncap
from kerncap.core.build.compile_file import VARIANT
from kerncap.core.build.recompile import recompile
from kerncap.core.device.devices import Device, resolve_device
from kerncap.core.errors import KerncapError, WorkloadError
from kerncap.core.files import json_text
from kerncap.core.judge.wording import element_text
from kerncap.core.program.profile import ProfileReport
from kerncap.core.scratch import scratch
from kerncap.core.units import many, size
from kerncap.demo.building import BuiltDemo, build
from kerncap.demo.calling import first_activate
from kerncap.demo.edits import HOIST, KERNEL, WRONG, Edit

SCHEMA = "kerncap-demo/1"
ITERATIONS = 10
_TOP = 8
_TIMEOUT_S = 600.0


@dataclass
class _Story:
    """What has been found so far: text for a person as it happens, and the document for `--json`."""

    quiet: bool
    place: str = ""  # where it runs, which is removed: commands are shown as if they were typed in it
    document: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def say(self, text: str = "") -> None:
        if not self.quiet:
            print(text, flush=True)

    @contextmanager
    def step(self, title: str, command: list[str] | None = None) -> Iterator[None]:
        """A numbered step, with the command that does the same, and how long it took."""
        number = len(self.document.setdefault("steps", [])) + 1
        if command:
            command = [word.removeprefix(os.path.join(self.place, "")) for word in command]
        self.say(f"\n{number}. {title}")
        if command:
            self.say(f"   $ {shlex.join(command)}")
        started = time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        self.document["steps"].append({"title": title, "command": command, "seconds": round(seconds, 3)})
        self.say(f"   ({seconds:.1f} s)")

    def expect(self, holds: bool, problem: str) -> None:
        """Notes what is not as it should be: the demonstration then ends with exit code 1."""
        if not holds:
            self.problems.append(problem)
            self.say(f"   NOT AS IT SHOULD BE: {problem}")


def _leaderboard(story: _Story, report: ProfileReport) -> None:
    unit = "sim us" if report.clock == "simulated" else "us"
    story.say(f"   {'%':>6}  {'calls':>6}  {'mean ' + unit:>11}  kernel")
    for kernel in report.kernels[:_TOP]:
        story.say(f"   {kernel.percent:6.2f}  {kernel.calls:6d}  {kernel.mean_ns / 1e3:11.2f}  {kernel.name}")
    story.say(
        f"   {many(report.dispatches, 'dispatch')} of {many(len(report.kernels), 'kernel')} "
        f"in {report.wall_s:.1f} s"
    )


def _profile(story: _Story, demo: BuiltDemo, device: Device) -> None:
    command = ["kerncap", "profile", "--", *demo.command]
    with story.step("Which kernel takes the time?", command), tempfile.TemporaryFile() as printed:
        report = kerncap.profile(demo.command, device=device, timeout=_TIMEOUT_S, stdout=printed.fileno())
        printed.seek(0)
        lines = printed.read().decode("utf-8", "replace").splitlines()
        if report.exit_code:
            text = "\n".join(lines)
            raise WorkloadError(
                f"The demonstration program ended with exit status {report.exit_code}.\n{text}"
            )
        for line in lines[-2:]:
            story.say(f"   the program: {line}")
        _leaderboard(story, report)
        story.document["profile"] = report.to_json(_TOP)
        hottest = report.kernels[0].name if report.kernels else "none"
        story.expect(hottest == KERNEL, f"the hottest kernel is {hottest}, not {KERNEL}")


def _extract(story: _Story, demo: BuiltDemo, device: Device, output: Path) -> None:
    command = ["kerncap", "extract", KERNEL, "--source-dir", str(demo.source_dir), "-o", str(output)]
    with (
        story.step("Take it out of the program", [*command, "--", *demo.command]),
        tempfile.TemporaryFile() as log,
    ):
        result = kerncap.extract(
            KERNEL,
            demo.command,
            device=device,
            source_dir=demo.source_dir,
            output=output,
            timeout=_TIMEOUT_S,
            stdout=log.fileno(),
        )
        story.document["extract"] = result.to_json()
        verdict = result.baseline.get("verdict")
        memory = f"{many(result.regions, 'region')}, {size(result.bytes)}"
        story.say(f"   dispatch {result.dispatch}: {memory}; {VARIANT} to edit")
        story.say(f"   its replay against what the program's own run wrote: {verdict}")
        story.expect(verdict == "IDENTICAL", f"the captured kernel's own replay is {verdict}")
        story.expect(result.source.variant == VARIANT, f"no source was found: {result.source.reason}")


def _time(story: _Story, where: Path, hsaco: Path | None, name: str) -> float:
    """Median ns of a replay."""
    timing = kerncap.replay(where, hsaco=hsaco, iterations=ITERATIONS)
    story.document[name] = timing.to_json()
    return float(story.document[name]["median_ns"])


def _first(document: dict[str, Any]) -> str:
    """The first differing element of a verdict, in words."""
    for region in document.get("regions", []):
        first = region.get("first")
        if region.get("mismatches") and first is not None:
            count = f"{region['mismatches']} of the {region['dtype']} values at {region['address']} differ"
            return f"{count}; the first: {element_text(first)}"
    return "no differing element is named"


def _edit(story: _Story, where: Path, edit: Edit, title: str, baseline_ns: float, right: bool) -> None:
    """One edit, rebuilt, timed if it is to be right, and compared; then taken back."""
    variant, object_file = where / VARIANT, where / "optimized.hsaco"
    name = "edit" if right else "wrong_edit"
    with story.step(title, ["make", "-C", str(where), "recompile", "validate"]):
        edit.apply(variant)
        for line in edit.diff():
            story.say(f"     {line}")
        try:
            built = recompile(where)
            story.say(f"   rebuilt in {built.seconds['total']:.2f} s")
            result = kerncap.validate(where, hsaco=object_file).to_json()
            story.document[name] = {"what": edit.what, "validate": result}
            verdict = result["verdict"]
            story.say(f"   verdict: {verdict} ({size(result['compared_bytes'])} compared)")
            if right:
                edited_ns = _time(story, where, object_file, "replay_edited")
                speedup = baseline_ns / edited_ns if edited_ns else 0.0
                story.document[name]["speedup"] = round(speedup, 4)
                story.say(
                    f"   {baseline_ns / 1e3:.2f} -> {edited_ns / 1e3:.2f} us {_clock(story)}: {speedup:.2f}x"
                )
                story.expect(verdict == "IDENTICAL", f"the edit's verdict is {verdict}")
                story.expect(speedup > 1.1, f"the edit's speedup is {speedup:.2f}")
            else:
                story.say(f"   {_first(result)}")
                story.expect(verdict == "FAIL", f"the wrong edit's verdict is {verdict}")
        finally:
            edit.undo(variant)


def _clock(story: _Story) -> str:
    return "(simulated, not GPU time)" if str(story.document["device"]).startswith("sim:") else ""


def _next() -> str:
    """What to do then, where kerncap is not in PATH too."""
    text = "Next: `kerncap demo --build decoder` and the commands above, or `kerncap tui` on a terminal"
    return f"{text}{first_activate()}."


def run(device: str | None = None, json: bool = False) -> int:
    """Build, profile, extract, replay, edit and validate the demonstration program. Returns the exit code.

    Nothing is left behind. With `json`, one document is printed at the end and nothing before it.
    """
    used = resolve_device(device)
    story = _Story(quiet=json)
    story.document.update(schema=SCHEMA, device=used.name)
    started = time.perf_counter()
    story.say(
        f"The whole loop on {used.name}" + (" (simulated: its clock counts cycles)" if used.simulated else "")
    )
    with scratch("demo") as place:
        story.place = place
        story.say(
            "In a folder of its own that is removed at the end; the commands do the same in one of yours."
        )
        tree, output = Path(place) / "decoder", Path(place) / "isolated" / KERNEL
        output.parent.mkdir()
        with story.step("Build the demonstration program", ["kerncap", "demo", "--build", str(tree)]):
            demo = build(tree, used)
        _profile(story, demo, used)
        _extract(story, demo, used, output)
        with story.step("Run it alone", ["kerncap", "replay", str(output), "--iterations", str(ITERATIONS)]):
            baseline_ns = _time(story, output, None, "replay")
            story.say(f"   median of {ITERATIONS}: {baseline_ns / 1e3:.2f} us {_clock(story)}")
        _edit(story, output, HOIST, f"Edit {VARIANT}: {HOIST.what}", baseline_ns, right=True)
        _edit(story, output, WRONG, f"A wrong edit: {WRONG.what}", baseline_ns, right=False)
    seconds = time.perf_counter() - started
    story.document.update(seconds=round(seconds, 3), problems=story.problems)
    if json:
        sys.stdout.write(json_text(story.document))
    else:
        ending = (
            "All as it should be"
            if not story.problems
            else f"Not as it should be: {many(len(story.problems), 'thing')}"
        )
        story.say(f"\n{ending}; {seconds:.0f} s in all.")
        story.say(_next())
    return KerncapError.exit_code if story.problems else 0
