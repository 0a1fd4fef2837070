"""How on_device.py runs a check and tells of it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from driving import Watched

HERE = Path(__file__).parent
WORK = Path(tempfile.mkdtemp(prefix="kerncap-cuda-"))
bad = 0


def say(good: bool, text: str) -> None:
    global bad
    bad += not good
    print(f"{'ok ' if good else 'BAD'} {text}", flush=True)


def attempt(name: str, check: Callable[[], None]) -> None:
    start = time.monotonic()
    try:
        check()
    except Exception as error:  # every check is told of
        say(False, f"{name}: {type(error).__name__}: {error}")
        if os.environ.get("TRACE"):
            traceback.print_exc()
    print(f"    {name}: {time.monotonic() - start:.1f} s", flush=True)


def plain(command: list[str | Path]) -> str:
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def told(watched: Watched) -> str:
    status = watched.status
    return f"{status.state.name} {status.message} code {watched.code} {watched.errors[-400:]}"
