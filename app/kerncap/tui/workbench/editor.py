"""The user's editor: which one it is, how it goes to a line, and starting it beside us or instead of us."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

_LINE_FLAGS: dict[str, tuple[str, ...]] = {
    "hx": ("{file}:{line}",),
    "helix": ("{file}:{line}",),
    "code": ("--wait", "-g", "{file}:{line}"),
    "codium": ("--wait", "-g", "{file}:{line}"),
    "subl": ("--wait", "{file}:{line}"),
    "zed": ("--wait", "{file}:{line}"),
    "ed": ("{file}",),
}
_PLUS = frozenset(
    ("vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "jed", "mg")
)
_TMUX_LIMIT_S = 5.0
_AT_ONCE_S = 1.5  # an editor that ends before has not been used
_LOOK_S = 0.05
# What a split runs: how the editor ended, for as long as somebody wants to know. tmux's own shell may be any.
_IN_SPLIT = 'f=$1; shift; "$@"; s=$?; [ -e "$f" ] && echo "$s" >"$f"; exit "$s"'


@dataclass(frozen=True)
class Outcome:
    """How it ended: `sentence` is what to say, empty where there is nothing; `beside`: it runs in a split."""

    sentence: str = ""
    failed: bool = False
    beside: bool = False
    status: Path | None = None  # where a split writes how the editor ended; `ended_at_once` looks there


def editor_words(configured: str | None, environment: Mapping[str, str] | None = None) -> list[str]:
    """The editor's command: as configured, else VISUAL, else EDITOR, else one that is there."""
    variables = os.environ if environment is None else environment
    for text in (configured, variables.get("VISUAL"), variables.get("EDITOR")):
        if text and text.strip():
            try:
                return shlex.split(text)
            except ValueError:
                return text.split()
    return [next((name for name in ("vim", "vi", "nano") if shutil.which(name)), "vi")]


def command(words: list[str], path: Path, line: int) -> list[str]:
    """The whole command, at `line` (0: none) where the editor is known to take one."""
    name = Path(words[0]).name if words else ""
    if line > 0 and name in _LINE_FLAGS:
        return [*words, *(part.format(file=path, line=line) for part in _LINE_FLAGS[name])]
    if line > 0 and name in _PLUS:
        return [*words, f"+{line}", str(path)]
    return [*words, str(path)]


async def in_place(arguments: list[str], directory: Path) -> Outcome:
    """Runs the editor in our terminal, which must be suspended, and waits for its end without blocking."""
    try:
        process = await asyncio.create_subprocess_exec(*arguments, cwd=directory)
    except OSError as error:
        return Outcome(_missing(arguments[0], error), failed=True)
    code = await process.wait()
    if code:
        return Outcome(f"{arguments[0]} ended with status {code}.", failed=True)
    return Outcome()


async def in_split(arguments: list[str], directory: Path, *, aside: bool) -> Outcome:
    """Opens the editor in a split of the tmux window that we are in; it is not waited for."""
    if shutil.which(arguments[0]) is None:
        return Outcome(_missing(arguments[0], None), failed=True)
    tmux = ["tmux", "split-window", "-h" if aside else "-v", "-c", str(directory)]
    pane = os.environ.get("TMUX_PANE")
    if pane:
        tmux += ["-t", pane]
    status = _status_file()
    if status is not None:
        arguments = ["sh", "-c", _IN_SPLIT, "sh", str(status), *arguments]
    outcome = await _split(tmux, arguments)
    if outcome.failed and status is not None:
        status.unlink(missing_ok=True)
    return outcome if outcome.failed else replace(outcome, status=status)


def _status_file() -> Path | None:
    try:
        descriptor, name = tempfile.mkstemp(prefix="kerncap-editor-")
    except OSError:
        return None  # then nothing is said of its end
    os.close(descriptor)
    return Path(name)


async def ended_at_once(status: Path, name: str) -> Outcome:
    """What to say of an editor in a split, where it has ended by the time that one takes to come up."""
    try:
        for _ in range(round(_AT_ONCE_S / _LOOK_S)):
            await asyncio.sleep(_LOOK_S)
            code = status.read_text().strip()
            if code == "0":
                return Outcome(f"{name} ended at once; a save by what it started is noticed all the same.")
            if code:
                way_out = "Set EDITOR, or `editor` in tui.toml; `i` edits here."
                return Outcome(f"{name} ended at once, with status {code}. {way_out}", failed=True)
    except OSError:
        pass  # somebody clears the directory for temporary files
    finally:
        with contextlib.suppress(OSError):
            status.unlink(missing_ok=True)
    return Outcome()


async def _split(tmux: list[str], arguments: list[str]) -> Outcome:
    try:
        process = await asyncio.create_subprocess_exec(
            *tmux,
            shlex.join(arguments),  # tmux hands one argument to a shell, quoted for it here
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return Outcome(_missing("tmux", error), failed=True)
    try:
        _, told = await asyncio.wait_for(process.communicate(), _TMUX_LIMIT_S)
    except asyncio.TimeoutError:
        process.kill()
        return Outcome(f"tmux did not answer within {_TMUX_LIMIT_S:g} s.", failed=True)
    if process.returncode:
        return Outcome(f"tmux: {told.decode('utf-8', 'replace').strip()}", failed=True)
    return Outcome("The editor is in a split; a save there starts an attempt.", beside=True)


def _missing(name: str, error: OSError | None) -> str:
    why = f"{name} is not installed"
    if error is not None and not isinstance(error, FileNotFoundError):
        why = f"{name}: {error.strerror}"
    return f"{why}. Set EDITOR, or `editor` in tui.toml; `i` edits here."
