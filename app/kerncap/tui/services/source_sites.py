"""Where a kernel is probably written: a quick look by name. Extraction proves it with the compiler."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

_LIMIT_S = 3.0


def site_of(symbol: str, roots: Sequence[Path]) -> str:
    """`path:line` of the first definition of that name below the roots; empty where there is none."""
    from kerncap.source.hip.lexer import symbol_words
    from kerncap.source.hip.tree import find_sites, source_files

    deadline = time.monotonic() + _LIMIT_S
    try:
        sites = find_sites(source_files(roots, deadline), symbol_words(symbol), deadline)
    except OSError:
        return ""
    return f"{sites[0].file}:{sites[0].kernel.line}" if sites else ""
