"""Errors as sentences for the screen; of those that nobody foresaw the whole story is in a file."""

from __future__ import annotations

import contextlib
import time
import traceback
from pathlib import Path

import platformdirs


def log_path() -> Path:
    """Where unexpected errors are written down."""
    return Path(platformdirs.user_state_dir("kerncap")) / "tui-errors.log"


def sentences(*parts: str) -> str:
    """Several sentences after each other: an error's text often ends without its stop."""
    told = [part.strip() for part in parts if part.strip()]
    return " ".join(part if part[-1] in ".!?:;" else f"{part}." for part in told)


def unexpected(error: BaseException) -> str:
    """A sentence for an error that is a fault of kerncap's own; its traceback goes to `log_path()`."""
    path = log_path()
    text = "".join(traceback.format_exception(error))
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(time.strftime("%Y-%m-%d %H:%M:%S\n") + text + "\n")
    return f"unexpected {type(error).__name__}: {error}. {path} has the details; please report it."
