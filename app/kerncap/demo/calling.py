"""How a person calls kerncap after the demonstration, which ran perhaps without kerncap in PATH."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path


def first_activate() -> str:
    """What to do before a command that begins with `kerncap`, after a `;`; empty where it is in PATH."""
    activate = Path(sys.executable).with_name("activate")
    if shutil.which("kerncap") is None and activate.is_file():
        return f"; first `. {shlex.quote(str(activate))}`, since kerncap is not in PATH"
    return ""
