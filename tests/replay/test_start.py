"""What a short command pays for before it starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from make_capture import Spec
from test_timers import scale_spec

from kerncap.core.capture.records import Capture

HEAVY = ("elftools", "numpy.ma", "numpy.random", "pdb", "unittest", "textual", "rich")


@pytest.mark.parametrize("call", ["judge.validate", "replay.replay"])
def test_only_what_is_needed_is_imported(make: Callable[[Spec], Capture], call: str) -> None:
    """Each of these takes 10 to 100 ms; a kernel of a few microseconds has no debug information here."""
    name = call.partition(".")[2]
    code = f"""
import sys
from kerncap.core.{call} import {name}
{name}({str(make(scale_spec()).path)!r})
print(*[m for m in {HEAVY!r} if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
