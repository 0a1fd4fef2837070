"""What the workbench says of work in another thread that ended by an error."""

from __future__ import annotations

from pathlib import Path

from kerncap.core.errors import KerncapError


def sentence_of(error: Exception, directory: Path, what: str) -> str:
    """One sentence. `what` ended by it, where the error is none that is foreseen."""
    if isinstance(error, KerncapError):
        return error.message
    if isinstance(error, OSError):
        return f"{error.filename or directory}: {error.strerror or error}."
    return f"{what} ended: {type(error).__name__}: {error}."
