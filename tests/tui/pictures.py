"""Pictures of the terminal UI from a real walk through the loop on the simulated GPU.

    python tests/tui/pictures.py screenshots

writes an SVG and a PNG of each screen, and loop.gif, the whole walk. It needs resvg_py and pillow
(`pip install kerncap[pictures]`), and a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

from kerncap.core.program.workload import Command
from kerncap.demo.building import BuiltDemo, build
from kerncap.tui.app import KerncapApp
from kerncap.tui.settings import Remembered, Settings

SIZE = (120, 36)
FONT = "DejaVu Sans Mono"
GIF_WIDTH = 900
_LIMIT_S = 120.0


class Walk:
    """The application in a terminal of its own making, and the pictures taken of it."""

    def __init__(self, app: KerncapApp, pilot: Any, where: Path) -> None:
        self.app = app
        self.pilot = pilot
        self.where = where
        self.frames: list[tuple[str, float]] = []  # SVG, seconds it is shown

    def text(self) -> str:
        """The screen as plain lines."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    async def wait(self, pattern: str) -> None:
        """Until the screen shows a match."""
        until = time.monotonic() + _LIMIT_S
        while not re.search(pattern, self.text()):
            if time.monotonic() > until:
                raise SystemExit(f"{pattern!r} did not appear; the screen:\n{self.text()}")
            await self.pilot.pause(0.1)
        await self.pilot.pause(0.2)

    async def frame(self, seconds: float, name: str = "") -> None:
        """Takes a picture; with a name, it is also one of its own."""
        await self.pilot.pause(0.05)
        svg = self.app.export_screenshot(title="kerncap")
        self.frames.append((svg, seconds))
        if name:
            (self.where / f"{name}.svg").write_text(svg)
            (self.where / f"{name}.png").write_bytes(png(svg))
            print(self.where / f"{name}.png")

    async def type(self, text: str, seconds: float = 0.15) -> None:
        """Types, with a picture a key."""
        for char in text:
            await self.pilot.press(char)
            await self.frame(seconds)


def png(svg: str, width: int = 0) -> bytes:
    """The picture, with a font that is installed in place of the one that Textual names."""
    import resvg_py

    text = re.sub(r"@font-face\s*{[^}]*}", "", svg)
    text = text.replace("Fira Code", FONT).replace("font-family: monospace", f"font-family: {FONT}")
    options: dict[str, Any] = {"svg_string": text, "monospace_family": FONT}
    if width:
        options["width"] = width
    return bytes(resvg_py.svg_to_bytes(**options))


async def walk(demo: BuiltDemo, where: Path) -> Walk:
    """Run, choose, extract, edit, see the verdict."""
    command = Command((demo.command[0], "--tokens", "1000", "--no-check"))
    app = KerncapApp(
        command,
        device="sim:gfx942",
        source_dir=demo.source_dir,
        settings=Settings(refresh_hz=5),
        remembered=Remembered(Path(tempfile.mkdtemp()) / "state.json"),
    )
    async with app.run_test(size=SIZE) as pilot:
        done = Walk(app, pilot, where)
        await done.wait("mul_mat_vec_q")
        await done.frame(0.8)
        for _ in range(8):
            await pilot.pause(0.6)
            await done.frame(0.3)
        await done.frame(1.0, "leaderboard")
        await pilot.press("slash")
        await done.type("mat_vec")
        await pilot.press("enter")
        await done.frame(1.0)
        await pilot.press("e")
        await done.wait("the program that runs")
        await done.frame(1.5, "extract")
        await pilot.press("enter")
        for _ in range(200):
            await pilot.pause(0.15)
            await done.frame(0.15)
            if "baseline" in done.text():
                break
        await done.wait("baseline +IDENTICAL")
        await done.frame(2.0, "extracted")
        await pilot.press("enter")
        await done.wait("attempt 1 IDENTICAL")
        await done.frame(1.5)
        variant = next(Path("isolated/mul_mat_vec_q").glob("kernel_variant.*"))
        await pilot.press("E")
        for _ in range(200):
            await pilot.pause(0.1)
            await done.frame(0.12)
            if re.search("attempt 2 [A-Z]+", done.text()):
                break
        await done.wait("attempt 2 IDENTICAL")
        await done.frame(2.5, "workbench")
        text = variant.read_text()
        await pilot.press("E")
        await done.wait("attempt 3 FAIL")
        await done.frame(1.5)
        await pilot.press("4")
        await done.wait("expected")
        await done.frame(2.5, "validation")
        variant.write_text(text.replace("float sum = 0.0f;", "float sum = nothing;"))
        await done.wait("undeclared identifier")
        await done.frame(2.5, "errors")
        await pilot.press("escape")
        await pilot.pause(0.3)
        if "kernels" not in done.text().splitlines()[1]:
            await pilot.press("escape")
        await done.wait("dispatches")
        await pilot.press("c")
        await done.wait("gfx942 .simulated.")
        await done.frame(2.0, "captures")
        await pilot.press("question_mark")
        await pilot.pause(0.3)
        await done.frame(2.0, "help")
        app.close_down()
    return done


def gif(frames: list[tuple[str, float]], path: Path) -> None:
    """The frames as one animated picture; those that follow an equal one only lengthen it."""
    import io

    from PIL import Image

    merged: list[tuple[str, float]] = []
    for svg, seconds in frames:
        if merged and merged[-1][0] == svg:
            merged[-1] = (svg, merged[-1][1] + seconds)
        else:
            merged.append((svg, seconds))
    pictures = [Image.open(io.BytesIO(png(svg, GIF_WIDTH))).convert("RGB") for svg, _ in merged]
    palette = pictures[-1].quantize(64, dither=Image.Dither.NONE)
    small = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    small[0].save(
        path,
        save_all=True,
        append_images=small[1:],
        duration=[round(seconds * 1000) for _, seconds in merged],
        loop=0,
        optimize=True,
    )
    print(path, f"{path.stat().st_size / 1e6:.1f} MB, {len(small)} frames")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Pictures of the terminal UI")
    parser.add_argument("directory", type=Path)
    where = parser.parse_args().directory.absolute()
    where.mkdir(parents=True, exist_ok=True)
    # A short path looks better in a picture.
    with tempfile.TemporaryDirectory(prefix="kc-") as folder:
        demo = build(Path(folder) / "decode", device="sim:gfx942")
        os.chdir(folder)
        done = asyncio.run(walk(demo, where))
    gif(done.frames, where / "loop.gif")


if __name__ == "__main__":
    main()
