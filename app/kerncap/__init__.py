"""kerncap: take one GPU kernel out of a running program, so that an edit is rebuilt, timed and checked alone.

The Python API is the same code as the command line::

    import kerncap

    report = kerncap.profile(["./decode", "--tokens", "16"], device="sim:gfx942")
    capture = kerncap.extract("mul_mat_vec_q", ["./decode"], output="isolated/mul_mat_vec_q")
    timing = kerncap.replay(capture.output, iterations=20)
    verdict = kerncap.validate(capture.output, hsaco="optimized.hsaco")

Everything raises `kerncap.KerncapError` (or a subclass) with a sentence for a person and the
exit code that the command line would end with.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kerncap.core.errors import KerncapError as KerncapError
    from kerncap.core.extract.extract import ExtractResult as ExtractResult
    from kerncap.core.extract.extract import extract as extract
    from kerncap.core.judge.validate import ValidateResult as ValidateResult
    from kerncap.core.judge.validate import validate as validate
    from kerncap.core.program.profile import ProfileReport as ProfileReport
    from kerncap.core.program.profile import profile as profile
    from kerncap.core.replay.replay import ReplayResult as ReplayResult
    from kerncap.core.replay.replay import replay as replay

# Public name -> module that defines it; imported on first use, so that `import kerncap` costs nothing.
_LAZY = {
    "KerncapError": "kerncap.core.errors",
    "profile": "kerncap.core.program.profile",
    "ProfileReport": "kerncap.core.program.profile",
    "extract": "kerncap.core.extract.extract",
    "ExtractResult": "kerncap.core.extract.extract",
    "replay": "kerncap.core.replay.replay",
    "ReplayResult": "kerncap.core.replay.replay",
    "validate": "kerncap.core.judge.validate",
    "ValidateResult": "kerncap.core.judge.validate",
}

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'kerncap' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))
